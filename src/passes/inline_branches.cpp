#include "ir/equal.h"
#include "passes/attempt.h"
#include "passes/passes.h"
#include "rewrite/match.h"

namespace tenon {
namespace {

constexpr std::string_view kRule = "only-branch";

// The branch that an `if` takes whatever its inputs are; null when that is dynamic.
const Graph* only_branch(const Node& node) {
  if (const std::optional<double> condition = uniform_number(node.in("condition")))
    return &node.region(*condition != 0 ? "then" : "else");
  return difference(node.region("then"), node.region("else")).empty() ? &node.region("then") : nullptr;
}

void inline_in(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    for (const auto& region : node->regions())
      inline_in(*region, journal);
    const Graph* branch = node->is("if") ? only_branch(*node) : nullptr;
    if (branch == nullptr)
      continue;
    if (!journal.is_open())
      return;
    const Attempt attempt =
        make_instead_of(node, [&] { return graph.inline_graph(*branch, node->ins("inputs")); });
    if (!attempt.values) {
      journal.declined(kRule, *node, attempt.error);
      continue;
    }
    journal.applied(kRule, {node}, Numerics::BitExact);
    graph.replace(node, *attempt.values);
  }
}

}  // namespace

void inline_branches(Graph& graph, Journal& journal) {
  inline_in(graph, journal);
  remove_dead(graph, journal);
}

}  // namespace tenon
