// isl.h — sets of pairs of integer tuples, by the integer set library: it decides what holds for all values
// of sizes and loop variables at once.
#pragma once

#include <isl/ctx.h>
#include <isl/union_map.h>
#include <isl/union_set.h>

#include <memory>
#include <string>

#include "base/error.h"

namespace tenon::loops {

struct FreeContext {
  void operator()(isl_ctx* context) const { isl_ctx_free(context); }
};
// It must outlive its relations.
using Context = std::unique_ptr<isl_ctx, FreeContext>;

class Relation {
 public:
  // A null stands for a failure, which is ours: text that cannot be read, or no more memory.
  explicit Relation(isl_union_map* map) : map_(map) {
    CHECK(map != nullptr, "the integer set library failed");
  }
  // As the library writes it: [n] -> { S[i] -> T[i, 0] : 0 <= i < n }
  Relation(const Context& context, const std::string& text)
      : Relation(isl_union_map_read_from_str(context.get(), text.c_str())) {}
  Relation(const Relation& other) : map_(other.copy()) {}
  Relation(Relation&&) = default;
  Relation& operator=(Relation other) {
    map_ = std::move(other.map_);
    return *this;
  }

  isl_union_map* get() const { return map_.get(); }
  isl_union_map* copy() const { return isl_union_map_copy(get()); }

  bool empty() const { return isl_union_map_is_empty(get()) == isl_bool_true; }
  Relation reversed() const { return Relation(isl_union_map_reverse(copy())); }
  // The pairs (a, c) for which there is a b with (a, b) in this and (b, c) in `next`.
  Relation then(const Relation& next) const {
    return Relation(isl_union_map_apply_range(copy(), next.copy()));
  }
  // The pairs (a, b) where this takes a to something before what it takes b to.
  Relation order() const { return Relation(isl_union_map_lex_lt_union_map(copy(), copy())); }
  // The pairs (a, b) that this takes to the same.
  Relation sameness() const { return then(reversed()); }

  friend Relation operator|(const Relation& a, const Relation& b) {
    return Relation(isl_union_map_union(a.copy(), b.copy()));
  }
  friend Relation operator&(const Relation& a, const Relation& b) {
    return Relation(isl_union_map_intersect(a.copy(), b.copy()));
  }
  friend Relation operator-(const Relation& a, const Relation& b) {
    return Relation(isl_union_map_subtract(a.copy(), b.copy()));
  }

 private:
  struct Free {
    void operator()(isl_union_map* map) const { isl_union_map_free(map); }
  };
  std::unique_ptr<isl_union_map, Free> map_;
};

}  // namespace tenon::loops
