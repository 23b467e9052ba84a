#include "verify/cut_out.h"

#include <unordered_map>

namespace tenon {
namespace {

bool has_no_operands(Value value) { return !value.is_input() && value.node()->operand_count() == 0; }

// The values that become inputs, and the nodes that are kept: those nearer to `node` than `depth`.
class Cutter {
 public:
  Cutter(const Node& node, int64_t depth) { visit(&node, depth); }

  bool keeps(const Node* node) const { return distance_.contains(node); }
  const std::vector<Value>& inputs() const { return inputs_; }

  // What was kept may also be reached as an input, on a longer way.
  void settle() {
    std::erase_if(inputs_, [&](Value input) { return !input.is_input() && keeps(input.node()); });
  }

 private:
  void visit(const Node* node, int64_t depth) {
    int64_t& known = distance_.try_emplace(node, 0).first->second;
    if (known >= depth)
      return;
    known = depth;
    for (Value operand : node->operands()) {
      if (!operand.is_input() && (depth > 1 || has_no_operands(operand)))
        visit(operand.node(), std::max<int64_t>(depth - 1, 1));
      else if (std::find(inputs_.begin(), inputs_.end(), operand) == inputs_.end())
        inputs_.push_back(operand);
    }
  }

  std::unordered_map<const Node*, int64_t> distance_;  // how much farther one may go from there
  std::vector<Value> inputs_;
};

// What the values are when the graph runs.
Data values_of(const Graph& graph, const std::vector<Value>& values, const Data& inputs) {
  const std::unique_ptr<Graph> copy = graph.clone();
  const std::vector<Node*> from = graph.nodes(), to = copy->nodes();
  std::unordered_map<const Node*, Node*> copies;
  for (size_t i = 0; i < from.size(); ++i)
    copies.emplace(from[i], to[i]);
  std::vector<Value> outputs;
  for (Value value : values)
    outputs.push_back(value.is_input() ? copy->input(value.index())
                                       : copies.at(value.node())->result(value.index()));
  copy->set_outputs(outputs);
  return evaluate(*copy, inputs);
}

}  // namespace

Cut cut_out(const Graph& graph, const Node& node, int64_t depth, const Data& graph_inputs) {
  Cutter cutter(node, depth);
  cutter.settle();
  Cut cut{std::make_unique<Graph>(graph.name()), values_of(graph, cutter.inputs(), graph_inputs)};
  std::unordered_map<const ValueData*, Value> copies;
  for (size_t i = 0; i < cutter.inputs().size(); ++i) {
    const Value input = cutter.inputs()[i];
    copies.emplace(input.data(), cut.graph->add_input(type_of(cut.inputs[i]), fmt::format("input_{}", i)));
  }
  for (const Node* each : graph.nodes()) {
    if (!cutter.keeps(each))
      continue;
    const Node* copy = cut.graph->copy_node(*each, [&](Value value) { return copies.at(value.data()); });
    for (int64_t i = 0; i < each->result_count(); ++i)
      copies.emplace(each->result(i).data(), copy->result(i));
  }
  std::vector<Value> outputs;
  for (Value result : node.results())
    outputs.push_back(copies.at(result.data()));
  cut.graph->set_outputs(outputs);
  return cut;
}

}  // namespace tenon
