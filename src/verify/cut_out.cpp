#include "verify/cut_out.h"

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

}  // namespace

RecordedValues record_values(const Graph& graph, const Data& inputs, const EvaluateOptions& options) {
  const std::unique_ptr<Graph> copy = graph.clone();
  const std::vector<Node*> from = graph.nodes(), to = copy->nodes();
  std::vector<const ValueData*> values;
  std::vector<Value> outputs;
  for (size_t i = 0; i < from.size(); ++i)
    for (int64_t result = 0; result < from[i]->result_count(); ++result) {
      values.push_back(from[i]->result(result).data());
      outputs.push_back(to[i]->result(result));
    }
  copy->set_outputs(outputs);
  Data data = evaluate(*copy, inputs, options);
  RecordedValues recorded;
  for (Value input : graph.inputs())
    recorded.emplace(input.data(), inputs[static_cast<size_t>(input.index())]);
  for (size_t i = 0; i < values.size(); ++i)
    recorded.emplace(values[i], std::move(data[i]));
  return recorded;
}

Piece cut_out(const Graph& graph, const Node& node, int64_t depth, const RecordedValues& recorded) {
  Cutter cutter(node, depth);
  cutter.settle();
  Piece cut{std::make_unique<Graph>(graph.name()), {}};
  for (Value input : cutter.inputs())
    cut.inputs.push_back(recorded.at(input.data()));
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
