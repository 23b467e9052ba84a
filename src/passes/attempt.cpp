#include "passes/attempt.h"

#include <unordered_set>

namespace tenon {

Attempt make_before(Node* node, const std::function<std::vector<Value>()>& make) {
  Graph& graph = node->graph();
  const std::vector<Node*> before = graph.nodes();
  const InsertBefore here(node);
  try {
    return {make(), ""};
  } catch (const UserError& error) {
    const std::unordered_set<Node*> old(before.begin(), before.end());
    const std::vector<Node*> now = graph.nodes();
    for (auto it = now.rbegin(); it != now.rend(); ++it)
      if (!old.contains(*it))
        graph.erase(*it);
    return {std::nullopt, error.what()};
  }
}

}  // namespace tenon
