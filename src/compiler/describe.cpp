#include "compiler/describe.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/units.h"
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

void count_nodes(const Program& program, std::set<std::string>& on_device, Placement& placement) {
  const auto count_host = [&](const HostStep& step) {
    ++placement.on_host[step.op];
    for (const auto& [name, region] : step.regions)
      placement.add(*placement_of(*region));
  };
  for (const Step& step : program.steps)
    if (const auto* kernel = std::get_if<KernelStep>(&step))
      on_device.insert(kernel->sources.begin(), kernel->sources.end());
    else if (const auto* host = std::get_if<HostStep>(&step))
      count_host(*host);
    else if (const auto* loops = std::get_if<LoopsStep>(&step))
      std::ranges::for_each(loops->loops, count_host);
}

}  // namespace

int64_t Placement::host_nodes() const {
  return std::accumulate(on_host.begin(), on_host.end(), int64_t{0},
                         [](int64_t sum, const auto& each) { return sum + each.second; });
}

void Placement::add(const Placement& other) {
  on_device += other.on_device;
  for (const auto& [op, count] : other.on_host)
    on_host[op] += count;
}

std::string describe(const Placement& placement) {
  std::vector<std::pair<std::string, int64_t>> ops(placement.on_host.begin(), placement.on_host.end());
  std::ranges::stable_sort(ops, std::greater(), &std::pair<std::string, int64_t>::second);
  std::string text = format_count(static_cast<uint64_t>(placement.on_device), "node") + " on the device, ";
  if (ops.empty())
    return text + "none on the host";
  std::vector<std::string> counts;
  for (const auto& [op, count] : ops)
    counts.push_back(fmt::format("{} {}", op, count));
  return text + fmt::format("{} on the host ({})", placement.host_nodes(), fmt::join(counts, ", "));
}

std::optional<Placement> placement_of(const Program& program) {
  if (!program.target.gpu)
    return std::nullopt;
  std::set<std::string> on_device;
  Placement placement;
  count_nodes(program, on_device, placement);
  placement.on_device += static_cast<int64_t>(on_device.size());
  return placement;
}

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
  needs.placement = placement_of(program);
  return needs;
}

Bindings sizes_of(const Program& program, const Data& inputs) {
  Bindings sizes;
  for (size_t i = 0; i < program.inputs.size(); ++i)
    fits(inputs[i], program.inputs[i].type, sizes);
  return sizes;
}

}  // namespace tenon::compiler
