#include "compiler/describe.h"

#include "tensor/byte_count.h"

namespace tenon::compiler {

using runtime::AliasStep;
using runtime::HostStep;
using runtime::KernelStep;
using runtime::LoopsStep;
using runtime::MemoryPlan;
using runtime::Program;
using runtime::Step;

namespace {

int64_t add(int64_t moved, int64_t more) {
  if (__builtin_add_overflow(moved, more, &moved))
    throw user_error("the model moves more bytes than can be counted");
  return moved;
}

}  // namespace

std::optional<int64_t> bytes_of(const Type& type, const Bindings& sizes) {
  if (!type.is_tensor() || !type.as_tensor().shape.ranked())
    return std::nullopt;
  const auto& [dtype, shape] = type.as_tensor();
  Extents extents;
  for (const Dim& dim : shape.dims()) {
    const std::optional<int64_t> size = dim.evaluate(sizes);
    if (!size)
      return std::nullopt;
    extents.push_back(*size);
  }
  return byte_count(dtype, extents);
}

int64_t bytes_moved(const Program& program, const Step& step, const Bindings& sizes) {
  int64_t moved = 0;
  if (!std::holds_alternative<AliasStep>(step))
    for_each_slot(step, [&](size_t slot) {
      moved = add(moved, bytes_of(program.slots[slot].type, sizes).value_or(0));
    });
  return moved;
}

Needs needs_of(const Program& program, const Bindings& sizes) {
  Needs needs;
  for (const Step& step : program.steps) {
    if (const auto* kernel = std::get_if<KernelStep>(&step)) {
      ++needs.kernels;
      needs.tuned_kernels += kernel->is_tuned ? 1 : 0;
    }
    needs.host_steps += std::holds_alternative<HostStep>(step) ? 1 : 0;
    if (const auto* loops = std::get_if<LoopsStep>(&step))
      needs.host_steps += static_cast<int64_t>(loops->loops.size());
    needs.bytes_moved = add(needs.bytes_moved, bytes_moved(program, step, sizes));
  }
  const MemoryPlan plan = plan_memory(program, sizes);
  needs.arena_bytes = plan.bytes;
  needs.arena_lower_bound = plan.lower_bound;
  return needs;
}

Bindings sizes_of(const Program& program, const Data& inputs) {
  Bindings sizes;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    fits(inputs[i], program.inputs[i].type, sizes);
  return sizes;
}

}  // namespace tenon::compiler
