#include "compiler/reuse_in_place.h"

#include <algorithm>

namespace tenon::compiler {

using loops::Assign;
using loops::Kernel;
using loops::Scalar;
using loops::Statement;
using runtime::Home;
using runtime::KernelStep;
using runtime::Slot;
using runtime::Step;

namespace {

void collect(const std::vector<Statement>& body, std::vector<const Assign*>& assigns, bool& others) {
  for (const Statement& statement : body) {
    if (const auto* assign = std::get_if<Assign>(&statement))
      assigns.push_back(assign);
    else if (const auto* inner = body_of(statement))
      collect(*inner, assigns, others);
    else
      others = true;
  }
}

// Whether the kernel may write its result over this input: it does so in one statement, which needs the input
// nowhere but there.
bool can_overwrite(const Kernel& kernel, size_t input) {
  std::vector<const Assign*> assigns;
  bool others = false;
  collect(kernel.body, assigns, others);
  if (kernel.outputs.size() != 1 || assigns.size() != 1 || others || !assigns.front()->combine.empty() ||
      kernel.inputs[input].sizes != kernel.outputs.front().sizes ||
      info(kernel.inputs[input].dtype).bytes != info(kernel.outputs.front().dtype).bytes)
    return false;
  bool same_place = true;
  for (const Scalar& value : assigns.front()->values)
    loops::for_each_load(value, [&](const Scalar& load) {
      if (load.name() == kernel.inputs[input].name)
        same_place = same_place && load.operands() == assigns.front()->places.front().at;
    });
  return same_place;
}

class Reuse {
 public:
  Reuse(std::vector<Slot>& slots, const std::vector<Step>& steps, const std::vector<size_t>& outputs)
      : slots_(slots), last_use_(slots.size(), 0) {
    for (size_t i = 0; i < steps.size(); ++i)
      for_each_slot(steps[i], [&](size_t slot) { last_use_[root(slot)] = i; });
    for (size_t slot : outputs)
      last_use_[root(slot)] = steps.size();
  }

  void reuse(const KernelStep& step, size_t number, const Kernel& kernel) {
    if (step.writes.size() != 1)
      return;
    Slot& result = slots_[step.writes.front()];
    if (result.home != Home::Arena || result.alias)
      return;
    for (size_t i = 0; i < step.reads.size(); ++i) {
      const size_t memory = root(step.reads[i]);
      if (slots_[memory].home != Home::Arena || last_use_[memory] != number || !can_overwrite(kernel, i) ||
          std::count_if(step.reads.begin(), step.reads.end(),
                        [&](size_t read) { return root(read) == memory; }) != 1)
        continue;
      result.alias = step.reads[i];
      last_use_[memory] = last_use_[step.writes.front()];
      return;
    }
  }

 private:
  // The slot whose memory this one lies in.
  size_t root(size_t slot) const {
    while (slots_[slot].alias)
      slot = *slots_[slot].alias;
    return slot;
  }

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

}  // namespace tenon::compiler
