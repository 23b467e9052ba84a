#include "compiler/describe.h"

#include "tensor/byte_count.h"

namespace tenon {
namespace {

// Nothing where only running tells.
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

}  // namespace

Needs needs_of(const Program& program, const Bindings& sizes) {
  Needs needs;
  const auto move = [&](const std::vector<size_t>& slots) {
    for (size_t slot : slots)
      if (__builtin_add_overflow(needs.bytes_moved, bytes_of(program.slots()[slot].type, sizes).value_or(0),
                                 &needs.bytes_moved))
        throw user_error("the model moves more bytes than can be counted");
  };
  for (const Step& step : program.steps()) {
    if (const auto* kernel = std::get_if<KernelStep>(&step)) {
      ++needs.kernels;
      move(kernel->reads);
      move(kernel->writes);
    } else if (const auto* host = std::get_if<HostStep>(&step)) {
      ++needs.host_steps;
      move(host->reads);
      move(host->writes);
    }
  }
  const MemoryPlan plan = program.memory_plan(sizes);
  needs.arena_bytes = plan.bytes;
  needs.arena_lower_bound = plan.lower_bound;
  return needs;
}

Bindings sizes_of(const Graph& graph, const Data& inputs) {
  Bindings sizes;
  for (int64_t i = 0; i < graph.input_count(); ++i)
    fits(inputs[static_cast<size_t>(i)], graph.input(i).type(), sizes);
  return sizes;
}

}  // namespace tenon
