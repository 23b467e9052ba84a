#include "cli/count_ops.h"

#include <algorithm>
#include <unordered_map>

#include "frontends/onnx/families.h"
#include "passes/running_nodes.h"

namespace tenon::cli {
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

void add_ops(const onnx::GraphProto& graph, const Scope* around, Counts& counts) {
  Scope scope(around);
  for (const onnx::ValueInfoProto& input : graph.input)
    scope.set(input.name, false);
  for (const onnx::TensorProto& initializer : graph.initializer)
    scope.set(initializer.name, true);
  for (const onnx::SparseTensorProto& initializer : graph.sparse_initializer)
    scope.set(initializer.values.name, true);
  for (const onnx::NodeProto& node : graph.node) {
    const bool has_graphs = std::ranges::any_of(
        node.attribute, [](const onnx::AttributeProto& attribute) { return !attribute.graphs.empty(); });
    const bool is_at_rest =
        !has_graphs && !is_random(node) &&
        std::ranges::all_of(node.input, [&](std::string_view input) { return scope.is_at_rest(input); });
    for (std::string_view output : node.output)
      scope.set(output, is_at_rest);
    if (is_at_rest)
      continue;
    ++counts[std::string(node.op_type)];
    for (const onnx::AttributeProto& attribute : node.attribute)
      for (const onnx::GraphProto& nested : attribute.graphs)
        add_ops(nested, &scope, counts);
  }
}

}  // namespace

Counts count_ops(const Graph& graph) {
  Counts counts;
  for (const Node* node : running_nodes(graph))
    ++counts[std::string(node->op().name)];
  return counts;
}

Counts count_ops(const onnx::GraphProto& graph) {
  Counts counts;
  add_ops(graph, nullptr, counts);
  return counts;
}

}  // namespace tenon::cli
