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
    Dim row = 0;
    for (const loops::Axis& axis : plan.axes)
      row = row * axis.size + Dim::symbol(axis.variable);
    const Scalar moved =
        Scalar::load(name, load.dtype(),
                     {Scalar::index(0), Scalar::index(Dim::symbol(stage.definition.reduced.front().variable)),
                      Scalar::index(row)});
    Scalar& value = stage.definition.values.front();
    value = loops::replace_loads(value, [&](const Scalar& each) { return each == load ? moved : each; });
    stage.packed_a = PackedA{.buffer = name, .rows = plan.rows};
    update_reads(node, graph_.buffers);
  }

  // Another for each way to read the buffer.
  static std::string name_of(const PackA& plan, const loops::Axis& reduced) {
    std::string name = fmt::format("{}_rows{}", plan.load.name(), plan.rows);
    const std::vector<Scalar>& indices = plan.load.operands();
    for (const loops::Axis& axis : plan.axes) {
      const auto dim = std::ranges::find_if(
          indices, [&](const Scalar& index) { return loops::axis_of({axis}, index).has_value(); });
      name += fmt::format("_{}_{}", dim - indices.begin(), *axis.size.constant());
    }
    return fmt::format("{}_{}", name, *reduced.size.constant());
  }

  KernelNode packing_node(const std::string& name, const PackA& plan, const Stage& product) {
    const loops::Axis& reduced = product.definition.reduced.front();
    Dim rows = 1;
    for (const loops::Axis& axis : plan.axes)
      rows = rows * axis.size;
    std::map<std::string, Dim> at{{reduced.variable, Dim::symbol("i1")}};
    Dim row = min(Dim::symbol("i0") * plan.rows, rows - plan.rows) + Dim::symbol("i2");
    for (size_t i = plan.axes.size(); i-- > 0;) {
      const Dim outer = i == 0 ? Dim(0) : floor_div(row, plan.axes[i].size);
      at.emplace(plan.axes[i].variable, row - outer * plan.axes[i].size);
      row = outer;
    }
    Definition definition;
    definition.axes = {{"i0", ceil_div(rows, plan.rows)}, {"i1", reduced.size}, {"i2", plan.rows}};
    Buffer buffer{.name = name, .dtype = plan.load.dtype(), .sizes = {}};
    for (const loops::Axis& axis : definition.axes)
      buffer.sizes.push_back(axis.size);
    graph_.buffers.add({.elements = buffer});
    definition.results = {std::move(buffer)};
    definition.at = loops::variables_of(definition.axes);
    definition.values = {plan.load.substitute(at)};
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
