// isl.h — sets of pairs of integer tuples, by the integer set library: it decides what holds for all values
// of sizes and loop variables at once.
#pragma once

#include <isl/ctx.h>
#include <isl/union_map.h>
#include <isl/union_set.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"

namespace tenon::loops {

// What cannot be decided, and why.
struct Undecided {
  std::string reason;
};

// Frees an object of the library, as `kFree` does.
template <auto kFree>
struct Free {
  template <class T>
  void operator()(T* object) const {
    kFree(object);
  }
};

// What relations are made in; it must outlive them. Work in it that takes longer than some seconds is given
// up: what is asked of it then is undecided.
// Aborts what the library computes once the creating thread has used too much processor time. A mutex and a
// condition variable, because ThreadSanitizer intercepts those even in code it does not instrument;
// std::stop_token would be reported as a race.
class Watch {
 public:
  explicit Watch(isl_ctx* context);
  ~Watch();

 private:
  std::mutex mutex_;
  std::condition_variable woken_;
  bool is_over_ = false;
  std::thread thread_;
};

class Context {
 public:
  Context();
  isl_ctx* get() const { return context_.get(); }

 private:
  std::unique_ptr<isl_ctx, Free<isl_ctx_free>> context_;
  std::unique_ptr<Watch> watch_;  // ends before the context does
};

// Throws Undecided where the library has given up; any other failure is ours.
void check_done(isl_ctx* context, bool done);

// The object, unless there is none.
template <class T>
T* check_done(isl_ctx* context, T* object) {
  check_done(context, object != nullptr);
  return object;
}

class Relation {
 public:
  // As the library writes it: [n] -> { S[i] -> T[i, 0] : 0 <= i < n }
  Relation(const Context& context, const std::string& text)
      : Relation(context.get(), isl_union_map_read_from_str(context.get(), text.c_str())) {}
  Relation(const Relation& other) : map_(other.copy()) {}
  Relation(Relation&&) = default;
  Relation& operator=(Relation other) {
    map_ = std::move(other.map_);
    return *this;
  }

  isl_union_map* get() const { return map_.get(); }
  isl_union_map* copy() const { return isl_union_map_copy(get()); }
  isl_ctx* context() const { return isl_union_map_get_ctx(get()); }

  bool empty() const { return decided(isl_union_map_is_empty(get())); }

  Relation reversed() const { return made(isl_union_map_reverse(copy())); }
  // The pairs (a, c) for which there is a b with (a, b) in this and (b, c) in `next`.
  Relation then(const Relation& next) const { return made(isl_union_map_apply_range(copy(), next.copy())); }
  // The pairs (a, b) where this takes a to something before, or behind, what `other` takes b to.
  Relation earlier_than(const Relation& other) const {
    return made(isl_union_map_lex_lt_union_map(copy(), other.copy()));
  }
  Relation later_than(const Relation& other) const {
    return made(isl_union_map_lex_gt_union_map(copy(), other.copy()));
  }
  // The pairs (a, b) and (c, b) for each pair ((a, c), b).
  Relation of_first() const { return made(isl_union_map_domain_factor_domain(copy())); }
  Relation of_second() const { return made(isl_union_map_domain_factor_range(copy())); }

  friend Relation operator|(const Relation& a, const Relation& b) {
    return a.made(isl_union_map_union(a.copy(), b.copy()));
  }
  friend Relation operator&(const Relation& a, const Relation& b) {
    return a.made(isl_union_map_intersect(a.copy(), b.copy()));
  }
  friend Relation operator-(const Relation& a, const Relation& b) {
    return a.made(isl_union_map_subtract(a.copy(), b.copy()));
  }

 private:
  Relation(isl_ctx* context, isl_union_map* map) : map_(check_done(context, map)) {}
  Relation made(isl_union_map* map) const { return {context(), map}; }
  bool decided(isl_bool answer) const {
    check_done(context(), answer != isl_bool_error);
    return answer == isl_bool_true;
  }

  std::unique_ptr<isl_union_map, Free<isl_union_map_free>> map_;
};

}  // namespace tenon::loops
