#include "schedule/cpu/pack_b.h"

#include <fmt/ranges.h>

#include <utility>

#include "base/error.h"
#include "lowering/contraction_plan.h"

namespace tenon::schedule {

using loops::Definition;
using loops::Scalar;
using lowering::BufferId;
using lowering::Home;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::PackedB;
using lowering::PackedWeights;
using lowering::PermutedLayout;
using lowering::Stage;

namespace {

// The dimensions of a load, as PackedB has them: batch dimensions, that of the lanes, and the reduced ones.
std::vector<size_t> order_in_packed_b(const Definition& sum, const Scalar& load) {
  std::vector<size_t> order;
  const auto add_where = [&](const auto& fits) {
    for (size_t dim = 0; dim < load.operands().size(); ++dim)
      if (fits(load.operands()[dim]))
        order.push_back(dim);
  };
  const auto is = [](const loops::Axis& axis) {
    return [&](const Scalar& index) { return loops::axis_of({axis}, index).has_value(); };
  };
  const loops::Axis& lane = sum.axes.back();
  add_where([&](const Scalar& index) { return !is(lane)(index) && !loops::axis_of(sum.reduced, index); });
  add_where(is(lane));
  for (const loops::Axis& axis : sum.reduced)
    add_where(is(axis));
  CHECK(order.size() == load.operands().size(), "{} has dimensions of no axis", load.name());
  return order;
}

class Packer {
 public:
  explicit Packer(KernelGraph& graph) : graph_(graph) {}

  void pack(KernelNode& node) {
    Stage& stage = *node.stage;
    const auto& [load, layout] = *stage.plan->pack_b;
    const std::vector<size_t> order = order_in_packed_b(stage.definition, load);
    const size_t reduced = stage.definition.reduced.size();
    const std::string name = fmt::format("{}_panels{}x{}_{}_{}", load.name(), layout.groups, layout.lanes,
                                         reduced, fmt::join(order, "_"));
    add_packed_b(name, load.name(), order, reduced, layout);
    std::vector<Scalar> place;
    for (size_t dim : order)
      place.push_back(load.operands()[dim]);
    const auto lane = place.end() - 1 - static_cast<int64_t>(reduced);
    place.push_back(std::exchange(*lane, Scalar::index(0)));
    stage.as_written = stage.definition;
    Scalar& value = stage.definition.values.front();
    value = loops::replace_loads(value, [&](const Scalar& each) {
      return each == load ? Scalar::load(name, load.dtype(), place) : each;
    });
    stage.packed_b = layout;
    stage.packed_b->buffer = name;
    update_reads(node, graph_.buffers);
  }

 private:
  void add_packed_b(const std::string& name, const std::string& weights, const std::vector<size_t>& order,
                    size_t reduced, const PackedB& packed_b) {
    if (graph_.buffers.contains(name))
      return;
    const BufferId source = graph_.buffers.id_of(weights);
    loops::Buffer buffer = graph_.buffers[source].elements;
    const std::vector<Dim> before = std::exchange(buffer.sizes, {});
    buffer.name = name;
    PackedWeights packed{
        source, {.order = {}, .reduced = reduced, .lanes = packed_b.lanes, .groups = packed_b.groups}};
    const auto* permuted = std::get_if<PermutedLayout>(&graph_.buffers[source].layout);
    for (size_t dim : order) {
      buffer.sizes.push_back(before[dim]);
      packed.order.order.push_back(permuted == nullptr ? dim : permuted->order[dim]);
    }
    Dim& lane_size = *(buffer.sizes.end() - 1 - static_cast<int64_t>(reduced));
    lane_size = ceil_div(floor_div(lane_size, packed_b.groups), packed_b.lanes) * packed_b.groups;
    buffer.sizes.emplace_back(packed_b.lanes);
    graph_.buffers.add({.elements = std::move(buffer), .home = Home::Constant, .layout = std::move(packed)});
  }

  KernelGraph& graph_;
};

}  // namespace

void pack_b(KernelGraph& graph) {
  Packer packer(graph);
  for (KernelNode& node : graph.nodes)
    if (node.stage && node.stage->plan && node.stage->plan->pack_b)
      packer.pack(node);
}

}  // namespace tenon::schedule
