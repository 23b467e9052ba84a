#include "report/memory_use.h"

#include <set>

#include "compiler/describe.h"

namespace tenon {

using compiler::bytes_of;
using runtime::Lifetime;
using runtime::MemoryPlan;
using runtime::padded_bytes;
using runtime::Program;
using runtime::Slot;

namespace {

int64_t bytes_of_constants(const Program& program, const Bindings& sizes) {
  std::set<size_t> slots;
  for (const runtime::Step& step : program.steps)
    if (const auto* kernel = std::get_if<runtime::KernelStep>(&step))
      for (size_t slot : kernel->reads) {
        while (program.slots[slot].alias)
          slot = *program.slots[slot].alias;
        if (program.slots[slot].home == runtime::Home::Constant)
          slots.insert(slot);
      }
  int64_t bytes = 0;
  for (size_t slot : slots)
    bytes += bytes_of(program.slots[slot].type, sizes).value_or(0);
  return bytes;
}

}  // namespace

MemoryUse memory_use_of(const Program& program, const Bindings& sizes) {
  const MemoryPlan plan = plan_memory(program, sizes);
  const std::vector<std::optional<Lifetime>> lifetimes =
      lifetimes_of(program.slots, program.steps, program.outputs);
  MemoryUse use{.lower_bound = plan.lower_bound,
                .arena = plan.bytes,
                .kernel_constants = bytes_of_constants(program, sizes)};
  use.live.resize(program.steps.size());
  for (size_t i = 0; i < program.slots.size(); ++i) {
    const Slot& slot = program.slots[i];
    if (slot.alias || plan.offsets[i] < 0 || !lifetimes[i])
      continue;
    const int64_t bytes = padded_bytes(bytes_of(slot.type, sizes).value_or(0));
    const auto last = std::min(lifetimes[i]->last, static_cast<int64_t>(use.live.size()) - 1);
    use.tensors.push_back(
        {slot.name, fmt::format("{}", slot.type), bytes, plan.offsets[i], lifetimes[i]->first, last});
    for (int64_t step = lifetimes[i]->first; step <= last; ++step)
      use.live[static_cast<size_t>(step)] += bytes;
  }
  return use;
}

}  // namespace tenon
