// execution_plan.h — what follows from the sizes of a program's inputs: the sizes of its values, where they
// lie in the arena, and with what numbers its kernels start. Sizes may be others in every run, so all that
// does not depend on them is done beforehand.
#pragma once

#include "ir/dim_list.h"
#include "ir/fit.h"
#include "runtime/plan_memory.h"
#include "runtime/program.h"

namespace tenon::runtime {

// The size; a user_error where it is not known, or cannot be counted.
int64_t evaluate_size(const Dim& size, const Bindings& bindings);

// A value of these sizes has the elements of another. A graph may leave it open whether they are as many;
// where they are not, it is a user_error.
void check_view(const AliasStep& step, DType dtype, const Extents& extents, int64_t bytes);

// What a kernel step starts with: a view of its numbers, which are the sizes that its symbols stand for,
// the iterations and the scratch bytes of each region, and the work.
class Launch {
 public:
  Launch(const KernelStep& step, const int64_t* numbers) : step_(step), numbers_(numbers) {}

  const int64_t* sizes() const { return numbers_; }
  int64_t iterations(size_t region) const { return numbers_[step_.sizes.size() + 2 * region]; }
  int64_t scratch(size_t region) const { return numbers_[step_.sizes.size() + 2 * region + 1]; }
  int64_t work() const { return numbers_[step_.sizes.size() + 2 * step_.regions.size()]; }

 private:
  const KernelStep& step_;
  const int64_t* numbers_;
};
std::vector<int64_t> launch_numbers(const KernelStep& step, const Bindings& bindings);

// For one set of sizes.
struct Layout {
  std::vector<int64_t> registers;  // of the planner's dims
  std::vector<int64_t> numbers;    // of its launches
  MemoryPlan memory;               // the offsets are those of the slots, -1 for those outside the arena
};

// How long each slot, with those that are views of it, is used, in steps; nothing for fused values.
std::vector<std::optional<Lifetime>> lifetimes_of(const std::vector<Slot>& slots,
                                                  const std::vector<Step>& steps,
                                                  const std::vector<size_t>& outputs);

class ExecutionPlan {
 public:
  explicit ExecutionPlan(const Program& program);

  // Sizes that cannot be, or do not follow from these, are a user_error.
  std::shared_ptr<const Layout> plan(const Bindings& sizes) const;

  // Whether the sizes of a slot that is used follow from those of the inputs.
  bool has_extents(size_t slot) const { return extents_[slot].has_value(); }
  Extents extents_of(size_t slot, const Layout& layout) const;
  int64_t bytes_of(size_t slot, const Layout& layout) const;
  // Whether the numbers of a kernel step depend on the sizes of the inputs alone.
  bool knows_launch(size_t step) const { return launches_[step].has_value(); }
  // Nothing where they do not.
  std::optional<Launch> launch_of(size_t step, const Layout& layout) const;

 private:
  using Registers = std::vector<size_t>;

  void add_slots(const std::vector<std::optional<Lifetime>>& lifetimes);
  void add_launch(const KernelStep& step);
  int64_t value_of(size_t number, const Layout& layout) const;
  int64_t count_of(size_t slot, const Layout& layout) const;  // its elements

  const std::vector<Slot>& slots_;
  const std::vector<Step>& steps_;
  DimList dims_;
  std::vector<std::optional<Registers>> extents_;  // of each slot
  std::vector<size_t> planned_;                    // slots in the arena, without views of others
  MemoryPlanner memory_;
  std::vector<const AliasStep*> views_;
  std::vector<std::optional<size_t>> launches_;  // of each step: where its numbers begin
  Registers numbers_;
};

// Where the slots of a program lie for these sizes of the inputs.
MemoryPlan plan_memory(const Program& program, const Bindings& sizes);

}  // namespace tenon::runtime
