#include "ir/op_call.h"

namespace tenon {

OpCall::OpCall(const Node& node) {
  auto graph = std::make_shared<Graph>(node.graph().name());
  std::map<Value, Value> inputs;
  for (Value operand : node.operands())
    if (!inputs.contains(operand))
      inputs.emplace(operand, graph->add_input(operand.type(), operand.name()));
  node_ = graph->copy_node(node, [&](Value value) { return inputs.at(value); });
  graph_ = std::move(graph);
}

Data OpCall::eval(std::span<const Datum> operands, RandomGenerator& random,
                  const Call::RunRegion* run_region) const {
  return node_->op().eval(Call(*node_, operands, random, run_region));
}

}  // namespace tenon
