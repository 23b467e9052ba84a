#include "compiler/reuse_in_place.h"

#include <algorithm>
#include <set>

#include "loops/overwrite.h"

namespace tenon::compiler {

using loops::Kernel;
using loops::Statement;
using runtime::Home;
using runtime::KernelStep;
using runtime::Slot;
using runtime::Step;

namespace {

int64_t count_statements(const std::vector<Statement>& body) {
  int64_t count = 0;
  for (const Statement& statement : body) {
    const auto* inner = body_of(statement);
    count += inner != nullptr ? count_statements(*inner) : 1;
  }
  return count;
}

// Code generation takes the buffers of a kernel for apart, but for those of several outputs: it leaves the
// order alone only where there is one statement, which must read an element before it writes it.
bool can_lie_over(const Kernel& kernel, size_t output, size_t input) {
  return (kernel.outputs.size() > 1 || count_statements(kernel.body) == 1) &&
         can_overwrite(kernel, input, output);
}

// The slot whose memory this one lies in.
size_t root_of(size_t slot, const std::vector<Slot>& slots) {
  while (slots[slot].alias)
    slot = *slots[slot].alias;
  return slot;
}

// The last step that uses the memory of each root; one past the last step where it is an output.
std::vector<size_t> last_uses(const std::vector<Slot>& slots, const std::vector<Step>& steps,
                              const std::vector<size_t>& outputs) {
  std::vector<size_t> last(slots.size(), 0);
  for (size_t i = 0; i < steps.size(); ++i)
    for_each_slot(steps[i], [&](size_t slot) { last[root_of(slot, slots)] = i; });
  for (size_t slot : outputs)
    last[root_of(slot, slots)] = steps.size();
  return last;
}

class Reuse {
 public:
  Reuse(std::vector<Slot>& slots, const std::vector<Step>& steps, const std::vector<size_t>& outputs)
      : slots_(slots), last_use_(last_uses(slots, steps, outputs)) {}

  void reuse(const KernelStep& step, size_t number, const Kernel& kernel) {
    if (step.writes.size() != 1)
      return;
    Slot& result = slots_[step.writes.front()];
    if (result.home != Home::Arena || result.alias)
      return;
    for (size_t i = 0; i < step.reads.size(); ++i) {
      const size_t memory = root(step.reads[i]);
      if (slots_[memory].home != Home::Arena || last_use_[memory] != number || !can_lie_over(kernel, 0, i) ||
          std::count_if(step.reads.begin(), step.reads.end(),
                        [&](size_t read) { return root(read) == memory; }) != 1)
        continue;
      result.alias = step.reads[i];
      last_use_[memory] = last_use_[step.writes.front()];
      return;
    }
  }

 private:
  size_t root(size_t slot) const { return root_of(slot, slots_); }

  std::vector<Slot>& slots_;
  std::vector<size_t> last_use_;  // of each root
};

}  // namespace

void reuse_in_place(std::vector<Slot>& slots, const std::vector<Step>& steps,
                    const std::vector<const Kernel*>& kernels, const std::vector<size_t>& outputs) {
  Reuse reuse(slots, steps, outputs);
  for (size_t i = 0; i < steps.size(); ++i)
    if (kernels[i] != nullptr)
      reuse.reuse(std::get<KernelStep>(steps[i]), i, *kernels[i]);
}

std::vector<std::vector<size_t>> overwritable_inputs(const std::vector<Slot>& slots,
                                                     const std::vector<Step>& steps,
                                                     const std::vector<const Kernel*>& kernels,
                                                     const std::vector<size_t>& outputs) {
  const std::vector<size_t> last = last_uses(slots, steps, outputs);
  std::vector<std::vector<size_t>> found(outputs.size());
  for (size_t number = 0; number < steps.size(); ++number) {
    if (kernels[number] == nullptr)
      continue;
    const auto& step = std::get<KernelStep>(steps[number]);
    // Whether all that the kernel reads of this memory is read where the result is written.
    const auto is_overwritable = [&](size_t memory, size_t result) {
      if (slots[memory].home != Home::Input || last[memory] != number)
        return false;
      for (size_t i = 0; i < step.reads.size(); ++i)
        if (root_of(step.reads[i], slots) == memory && !can_lie_over(*kernels[number], result, i))
          return false;
      return true;
    };
    for (size_t result = 0; result < step.writes.size(); ++result) {
      const Slot& slot = slots[step.writes[result]];
      if (slot.home != Home::Output || slot.alias)
        continue;
      std::set<size_t> memories;
      for (size_t read : step.reads)
        if (const size_t memory = root_of(read, slots); is_overwritable(memory, result))
          memories.insert(static_cast<size_t>(slots[memory].number));
      found[static_cast<size_t>(slot.number)].assign(memories.begin(), memories.end());
    }
  }
  return found;
}

}  // namespace tenon::compiler
