#include "passes/running_nodes.h"

#include <algorithm>
#include <unordered_set>

namespace tenon {

std::vector<const Node*> running_nodes(const Graph& graph) {
  std::vector<const Node*> running;
  std::unordered_set<const Node*> at_rest;
  for (const Node* node : graph.nodes()) {
    const std::vector<Value> operands = node->operands();
    const bool is_at_rest = !node->op().traits.random && node->regions().empty() &&
                            std::all_of(operands.begin(), operands.end(), [&](Value operand) {
                              return !operand.is_input() && at_rest.contains(operand.node());
                            });
    if (is_at_rest) {
      at_rest.insert(node);
      continue;
    }
    running.push_back(node);
    for (const auto& region : node->regions()) {
      const std::vector<const Node*> nested = running_nodes(*region);
      running.insert(running.end(), nested.begin(), nested.end());
    }
  }
  return running;
}

int64_t count_nodes(const Graph& graph) { return static_cast<int64_t>(running_nodes(graph).size()); }

}  // namespace tenon
