#include "cli/count_ops.h"

#include <algorithm>
#include <set>

#include "frontends/onnx/families.h"
#include "passes/running_nodes.h"

namespace tenon::cli {
namespace {

using Names = std::set<std::string_view>;

bool is_random(const onnx::NodeProto& node) {
  return std::ranges::find(onnx::random_conversions(), node.op_type, &onnx::Conversion::op_type) !=
         onnx::random_conversions().end();
}

// `at_rest` are the values around the graph that follow from constants alone.
void add_ops(const onnx::GraphProto& graph, Names at_rest, Counts& counts) {
  for (const onnx::ValueInfoProto& input : graph.input)
    at_rest.erase(input.name);
  for (const onnx::TensorProto& initializer : graph.initializer)
    at_rest.insert(initializer.name);
  for (const onnx::SparseTensorProto& initializer : graph.sparse_initializer)
    at_rest.insert(initializer.values.name);
  at_rest.insert("");  // an input that is left out
  for (const onnx::NodeProto& node : graph.node) {
    const bool has_graphs = std::ranges::any_of(
        node.attribute, [](const onnx::AttributeProto& attribute) { return !attribute.graphs.empty(); });
    if (!has_graphs && !is_random(node) &&
        std::ranges::all_of(node.input, [&](std::string_view input) { return at_rest.contains(input); })) {
      at_rest.insert(node.output.begin(), node.output.end());
      continue;
    }
    ++counts[std::string(node.op_type)];
    for (const onnx::AttributeProto& attribute : node.attribute)
      for (const onnx::GraphProto& nested : attribute.graphs)
        add_ops(nested, at_rest, counts);
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
  add_ops(graph, {}, counts);
  return counts;
}

}  // namespace tenon::cli
