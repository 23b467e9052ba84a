#include "schedule/cpu/pack_a.h"

#include <algorithm>

#include "lowering/contraction_plan.h"

namespace tenon::schedule {

using loops::Buffer;
using loops::Definition;
using loops::Scalar;
using lowering::KernelGraph;
using lowering::KernelNode;
using lowering::PackA;
using lowering::PackedA;
using lowering::Stage;

namespace {

class RowPacker {
 public:
  explicit RowPacker(KernelGraph& graph) : graph_(graph) {}

  void run() {
    for (KernelNode& each : graph_.nodes) {
      KernelNode node = std::move(each);
      if (node.stage && node.stage->plan && node.stage->plan->pack_a)
        pack(node);
      nodes_.push_back(std::move(node));
    }
    graph_.nodes = std::move(nodes_);
  }

 private:
  void pack(KernelNode& node) {
    Stage& stage = *node.stage;
    const PackA& plan = *stage.plan->pack_a;
    const Scalar& load = plan.load;
    const std::string name = name_of(plan, stage.definition.reduced.front());
    if (!graph_.buffers.contains(name))
      nodes_.push_back(packing_node(name, plan, stage));
    const Scalar moved =
        Scalar::load(name, load.dtype(),
                     {Scalar::index(0), Scalar::index(Dim::symbol(stage.definition.reduced.front().variable)),
                      Scalar::index(Dim::symbol(plan.axis.variable))});
    Scalar& value = stage.definition.values.front();
    value = loops::replace_loads(value, [&](const Scalar& each) { return each == load ? moved : each; });
    stage.packed_a = PackedA{.buffer = name, .rows = plan.rows};
    update_reads(node, graph_.buffers);
  }

  // Another for each way to read the buffer.
  static std::string name_of(const PackA& plan, const loops::Axis& reduced) {
    const std::vector<Scalar>& indices = plan.load.operands();
    const auto dim = std::ranges::find_if(
        indices, [&](const Scalar& index) { return loops::axis_of({plan.axis}, index).has_value(); });
    return fmt::format("{}_rows{}_{}_{}_{}", plan.load.name(), plan.rows, dim - indices.begin(),
                       *plan.axis.size.constant(), *reduced.size.constant());
  }

  KernelNode packing_node(const std::string& name, const PackA& plan, const Stage& product) {
    const loops::Axis &row = plan.axis, &reduced = product.definition.reduced.front();
    const Dim first = min(Dim::symbol("i0") * plan.rows, row.size - plan.rows);
    Definition definition;
    definition.axes = {{"i0", ceil_div(row.size, plan.rows)}, {"i1", reduced.size}, {"i2", plan.rows}};
    Buffer buffer{.name = name, .dtype = plan.load.dtype(), .sizes = {}};
    for (const loops::Axis& axis : definition.axes)
      buffer.sizes.push_back(axis.size);
    graph_.buffers.add({.elements = buffer});
    definition.results = {std::move(buffer)};
    definition.at = loops::variables_of(definition.axes);
    definition.values = {plan.load.substitute(
        {{row.variable, first + Dim::symbol("i2")}, {reduced.variable, Dim::symbol("i1")}})};
    return make_node(
        {.definition = std::move(definition), .sources = product.sources, .contraction = product.contraction},
        graph_.buffers);
  }

  KernelGraph& graph_;
  std::vector<KernelNode> nodes_;
};

}  // namespace

void pack_a(KernelGraph& graph) { RowPacker(graph).run(); }

}  // namespace tenon::schedule
