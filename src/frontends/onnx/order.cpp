#include "frontends/onnx/order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"

namespace tenon::onnx {
namespace {

// The names a node needs: its inputs, and what its nested graphs use from outside.
void collect_needs(const NodeProto& node, std::vector<std::string_view>& needs) {
  needs.insert(needs.end(), node.input.begin(), node.input.end());
  for (const AttributeProto& attribute : node.attribute)
    for (const GraphProto& graph : attribute.graphs) {
      std::unordered_set<std::string_view> own;
      for (const ValueInfoProto& input : graph.input)
        own.insert(input.name);
      for (const TensorProto& initializer : graph.initializer)
        own.insert(initializer.name);
      for (const SparseTensorProto& initializer : graph.sparse_initializer)
        own.insert(initializer.values.name);
      std::vector<std::string_view> inner_needs;
      for (const NodeProto& inner : graph.node) {
        own.insert(inner.output.begin(), inner.output.end());
        collect_needs(inner, inner_needs);
      }
      for (const ValueInfoProto& output : graph.output)
        inner_needs.push_back(output.name);
      std::copy_if(inner_needs.begin(), inner_needs.end(), std::back_inserter(needs),
                   [&](std::string_view name) { return !own.contains(name); });
    }
}

}  // namespace

std::string node_label(const NodeProto& node) {
  if (!node.name.empty())
    return std::string(node.name);
  for (std::string_view output : node.output)
    if (!output.empty())
      return std::string(output);
  return std::string(node.op_type);
}

std::vector<const NodeProto*> in_order(const std::vector<NodeProto>& nodes) {
  std::unordered_map<std::string_view, size_t> maker;
  for (size_t i = 0; i < nodes.size(); ++i)
    for (std::string_view output : nodes[i].output)
      if (!output.empty())
        maker.emplace(output, i);
  std::vector<std::vector<size_t>> users(nodes.size());
  std::vector<size_t> waiting(nodes.size(), 0);
  for (size_t i = 0; i < nodes.size(); ++i) {
    std::vector<std::string_view> needs;
    collect_needs(nodes[i], needs);
    for (std::string_view need : needs)
      if (const auto it = maker.find(need); it != maker.end()) {
        users[it->second].push_back(i);
        ++waiting[i];
      }
  }
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
  for (size_t i = 0; i < nodes.size(); ++i)
    if (waiting[i] == 0)
      ready.push(i);
  std::vector<const NodeProto*> order;
  while (!ready.empty()) {
    const size_t i = ready.top();
    ready.pop();
    order.push_back(&nodes[i]);
    for (size_t user : users[i])
      if (--waiting[user] == 0)
        ready.push(user);
  }
  for (size_t i = 0; i < nodes.size() && order.size() < nodes.size(); ++i)
    if (waiting[i] > 0)
      throw user_error("node \"{}\": {}: it needs its own result, directly or through other nodes",
                       node_label(nodes[i]), nodes[i].op_type);
  return order;
}

}  // namespace tenon::onnx
