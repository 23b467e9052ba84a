#include <algorithm>

#include "ops/random.h"
#include "passes/passes.h"

namespace tenon {
namespace {

bool is_used(const Node& node) {
  const std::vector<Value> results = node.results();
  return std::any_of(results.begin(), results.end(), [](Value result) { return result.use_count() > 0; });
}

}  // namespace

void remove_dead(Graph& graph, Journal& journal) {
  for_each_graph(graph, [&](Graph& each) {
    std::vector<Node*> nodes = each.nodes();
    std::reverse(nodes.begin(), nodes.end());
    for (Node* node : nodes) {
      if (is_used(*node) || takes_call(*node))
        continue;
      if (!journal.is_open())
        return;
      journal.applied("dead", {node}, Numerics::BitExact);
      each.erase(node);
    }
  });
}

}  // namespace tenon
