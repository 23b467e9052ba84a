// folds.h — combines of what the iterations of a thread loop give into one place: each thread combines its
// own, then those of a warp are combined by shuffles, then those of the warps through shared memory, always
// in the same order. Warps of a cluster write into the shared memory of each of its blocks, in two places in
// turn: who writes to one again has what all wrote to the other, so that nobody still reads this one.
#pragma once

#include "codegen/cuda/assigns.h"

namespace tenon::codegen::cuda {

// Whether what its warps have is combined through shared memory.
inline bool meets_in_shared_memory(const Team& team) { return !team.is_in_warp(); }
// Whether threads then wait for all that each of them did before.
inline bool folds_synchronise(const Team& team) { return meets_in_shared_memory(team) && !team.is_cluster(); }

class FoldText : protected AssignText {
 protected:
  using AssignText::AssignText;
  ~FoldText() = default;

  void begin_folds(const loops::Loop& loop);
  // All threads have the result, in registers, or one writes it.
  void finish_folds(const loops::Loop& loop);

  // What folds of a cluster need at the start of the kernel.
  void begin_exchanges();
  void synchronise();
  // What runs in one thread of the team.
  template <class F>
  void in_first_thread(F&& f) {
    if (team_.threads == 1)
      return f();
    writer_.open("if (thread == 0)");
    f();
    writer_.close();
  }

 private:
  bool folds(const loops::Assign& assign) const final { return folds_.contains(&assign); }
  bool fold(const loops::Assign& assign) final;

  // What a thread has combined so far.
  struct Fold {
    std::vector<std::string> parts;  // for each place
    std::string begun;               // whether that is anything; empty where the parts start neutral
    std::optional<int64_t> count;    // of elements, where the place varies in loops within the thread's
    std::vector<std::string> of_warps;
    std::string begun_warps;
  };

  void absorb(const loops::Assign& assign, const Fold& fold, const std::string& at,
              std::vector<Expression> coming);
  std::optional<int64_t> partial_count(const loops::Assign& assign, const loops::Loop& loop) const;
  std::string subscript(const loops::Assign& assign, const Fold& fold);

  void begin_fold(const loops::Assign& assign, const loops::Loop& loop);
  template <class F>
  void for_each_part(const Fold& fold, F&& f);
  void shuffle(const loops::Assign& assign, const Fold& fold);
  void write_of_warp(const loops::Assign& assign, Fold& fold);
  Expression part_of_warp(DType dtype, const std::string& of_warps, const std::string& warp) const;
  void expect_parts(const std::vector<const loops::Assign*>& folds);
  void wait_for_parts();
  void combine_in_lanes(const loops::Assign& assign, const Fold& fold);
  void combine_warps(const loops::Assign& assign, const Fold& fold);
  void finish_fold(const loops::Assign& assign, const Fold& fold);
  Expression shuffled(DType dtype, std::string_view function, const std::string& value,
                      const std::string& from);

  std::map<const loops::Assign*, Fold> folds_;
};

}  // namespace tenon::codegen::cuda
