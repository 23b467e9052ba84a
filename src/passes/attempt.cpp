#include "passes/attempt.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace tenon {
namespace {

// Erases what was made since there were only these.
void erase_new(Graph& graph, const std::vector<Node*>& before) {
  const std::unordered_set<Node*> old(before.begin(), before.end());
  const std::vector<Node*> now = graph.nodes();
  for (auto it = now.rbegin(); it != now.rend(); ++it)
    if (!old.contains(*it))
      graph.erase(*it);
}

bool has_learnt(Value is, Value was) {
  return is.type() != was.type() || is.known_dims() != was.known_dims();
}

// Copies what depends on the results of `node`, with `values` for them, as far as more is known then. A
// user_error where something makes no sense.
void try_users(const Node& node, const std::vector<Value>& values) {
  Graph& graph = node.graph();
  std::unordered_map<const ValueData*, Value> learnt;
  const auto learn = [&](Value was, Value is) {
    if (has_learnt(is, was))
      learnt.emplace(was.data(), is);
  };
  const auto is_learnt = [&](Value value) { return learnt.contains(value.data()); };
  for (size_t i = 0; i < values.size(); ++i)
    learn(node.result(static_cast<int64_t>(i)), values[i]);
  const InsertBefore end(graph.return_node());
  for (const Node* user : graph.nodes()) {
    const std::vector<Value> operands = user->operands();
    if (std::none_of(operands.begin(), operands.end(), is_learnt))
      continue;
    const Node* copy = graph.copy_node(
        *user, [&](Value value) { return is_learnt(value) ? learnt.at(value.data()) : value; });
    for (int64_t i = 0; i < user->result_count(); ++i)
      learn(user->result(i), copy->result(i));
  }
}

}  // namespace

Attempt make_before(Node* node, const std::function<std::vector<Value>()>& make) {
  Graph& graph = node->graph();
  const std::vector<Node*> before = graph.nodes();
  const InsertBefore here(node);
  try {
    return {make(), ""};
  } catch (const UserError& error) {
    erase_new(graph, before);
    return {std::nullopt, error.what()};
  }
}

Attempt make_instead_of(Node* node, const std::function<std::vector<Value>()>& make) {
  return make_before(node, [&] {
    const std::vector<Value> values = make();
    const std::vector<Node*> made = node->graph().nodes();
    try_users(*node, values);
    erase_new(node->graph(), made);
    return values;
  });
}

}  // namespace tenon
