#include "optimizer/count_ops.h"

#include <algorithm>
#include <unordered_map>

#include "frontends/onnx/families.h"
#include "passes/running_nodes.h"

namespace tenon::optimizer {
namespace {

// Which values of a graph follow from constants alone. Those of the graphs around it are seen within it.
class Scope {
 public:
  explicit Scope(const Scope* around) : around_(around) {}

  void set(std::string_view name, bool is_at_rest) { at_rest_[name] = is_at_rest; }

  bool is_at_rest(std::string_view name) const {
    for (const Scope* scope = this; scope != nullptr; scope = scope->around_)
      if (const auto found = scope->at_rest_.find(name); found != scope->at_rest_.end())
        return found->second;
    return name.empty();  // an input that is left out
  }

 private:
  const Scope* around_;
  std::unordered_map<std::string_view, bool> at_rest_;
};

bool is_random(const onnx::NodeProto& node) {
  return std::ranges::find(onnx::random_conversions(), node.op_type, &onnx::Conversion::op_type) !=
         onnx::random_conversions().end();
}

class Counter {
 public:
  explicit Counter(const onnx::ModelProto& model) : model_(model) { add(model.graph, nullptr); }

  Counts counts;

 private:
  const onnx::FunctionProto* function_of(const onnx::NodeProto& node) const {
    const auto found = std::ranges::find_if(model_.functions, [&](const onnx::FunctionProto& function) {
      return function.name == node.op_type && function.domain == node.domain &&
             function.overload == node.overload;
    });
    return found == model_.functions.end() ? nullptr : &*found;
  }

  void add(const onnx::GraphProto& graph, const Scope* around) {
    Scope scope(around);
    for (const onnx::ValueInfoProto& input : graph.input)
      scope.set(input.name, false);
    for (const onnx::TensorProto& initializer : graph.initializer)
      scope.set(initializer.name, true);
    for (const onnx::SparseTensorProto& initializer : graph.sparse_initializer)
      scope.set(initializer.values.name, true);
    add(graph.node, scope);
  }

  void add(const std::vector<onnx::NodeProto>& nodes, Scope& scope) {
    for (const onnx::NodeProto& node : nodes)
      if (const onnx::FunctionProto* function = function_of(node))
        add_call(*function, node, scope);
      else
        add(node, scope);
  }

  void add_call(const onnx::FunctionProto& function, const onnx::NodeProto& call, Scope& scope) {
    Scope body(nullptr);
    for (size_t i = 0; i < function.input.size(); ++i)
      body.set(function.input[i], i >= call.input.size() || scope.is_at_rest(call.input[i]));
    add(function.node, body);
    for (size_t i = 0; i < std::min(call.output.size(), function.output.size()); ++i)
      scope.set(call.output[i], body.is_at_rest(function.output[i]));
  }

  void add(const onnx::NodeProto& node, Scope& scope) {
    const bool has_graphs = std::ranges::any_of(
        node.attribute, [](const onnx::AttributeProto& attribute) { return !attribute.graphs.empty(); });
    const bool is_at_rest =
        !has_graphs && !is_random(node) &&
        std::ranges::all_of(node.input, [&](std::string_view input) { return scope.is_at_rest(input); });
    for (std::string_view output : node.output)
      scope.set(output, is_at_rest);
    if (is_at_rest)
      return;
    ++counts[std::string(node.op_type)];
    for (const onnx::AttributeProto& attribute : node.attribute)
      for (const onnx::GraphProto& nested : attribute.graphs)
        add(nested, &scope);
  }

  const onnx::ModelProto& model_;
};

}  // namespace

Counts count_ops(const Graph& graph) {
  Counts counts;
  for (const Node* node : running_nodes(graph))
    ++counts[std::string(node->op().name)];
  return counts;
}

Counts count_ops(const onnx::ModelProto& model) { return Counter(model).counts; }

int64_t sum(const Counts& counts) {
  int64_t sum = 0;
  for (const auto& [op, count] : counts)
    sum += count;
  return sum;
}

}  // namespace tenon::optimizer
