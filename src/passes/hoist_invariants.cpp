// hoist_invariants.cpp — what a loop computes in each iteration from nothing but what it is handed in once is
// computed before it, where at least one iteration is certain:
//
//   while(captured=[w]) body(iteration, x, w) { t = transpose(w)  y = matmul(x, t)  … }
//     →  t = transpose(w)  while(captured=[w, t]) body(iteration, x, w, t) { y = matmul(x, t)  … }
#include <algorithm>
#include <map>
#include <set>

#include "passes/passes.h"
#include "passes/remake_control.h"
#include "rewrite/match.h"

namespace tenon {
namespace {

constexpr std::string_view kRule = "hoist";

bool runs_at_least_once(const Node& loop) {
  if (loop.is("scan")) {
    const Value first = loop.ins("scanned").front();
    const std::vector<int64_t>& axes = loop.attr("axes");
    const auto iterations = first.shape().ranked() ? first.dim(axes.front()).constant() : std::nullopt;
    return iterations && *iterations > 0;
  }
  if (loop.has("condition") && uniform_number(loop.in("condition")).value_or(0) == 0)
    return false;
  if (!loop.has("trip_count"))
    return true;
  const auto limit = loop.in("trip_count").known_ints();
  return limit && limit->size() == 1 && limit->front() > 0;
}

bool is_constant(const Node& node) { return node.is("constant"); }

// Bytes that are made larger integers. Products of bytes are known by it, and convert what they read for
// nothing.
bool widens_bytes(const Node& node) {
  if (!node.is("cast"))
    return false;
  const DType from = node.in("x").dtype(), to = node.result().dtype();
  return (from == DType::I8 || from == DType::U8) && is_integer(to) && info(to).bytes > 1;
}

// The nodes of a body that can be computed before the loop, in order, with the constants that they take.
struct Invariants {
  std::vector<Node*> nodes;
  std::vector<Value> wanted;  // what the rest of the body reads of them
};

Invariants find_invariants(const Graph& body, int64_t first_captured) {
  std::set<Node*> found;
  const auto is_invariant = [&](Value value) {
    if (value.is_input())
      return value.index() >= first_captured;
    if (!is_constant(*value.node()))
      return found.contains(value.node());
    // One that the rest of the body needs too would be there twice.
    return value.has_one_use() || value.shape().element_count() == Dim(1);
  };
  Invariants invariants;
  for (Node* node : body.nodes()) {
    const std::vector<Value> operands = node->operands();
    // What is made of constants alone is for folding.
    if (is_constant(*node) || node->op().traits.random || !node->regions().empty() || widens_bytes(*node) ||
        std::all_of(operands.begin(), operands.end(), is_fixed) ||
        !std::all_of(operands.begin(), operands.end(), is_invariant))
      continue;
    found.insert(node);
    for (Value operand : operands)
      if (!operand.is_input() && is_constant(*operand.node()) &&
          std::find(invariants.nodes.begin(), invariants.nodes.end(), operand.node()) ==
              invariants.nodes.end())
        invariants.nodes.push_back(operand.node());
    invariants.nodes.push_back(node);
  }
  for (Node* node : found)
    for (Value result : node->results()) {
      const std::vector<Node*> users = result.users();
      if (std::any_of(users.begin(), users.end(), [&](Node* user) { return !found.contains(user); }))
        invariants.wanted.push_back(result);
    }
  std::sort(invariants.wanted.begin(), invariants.wanted.end(), [](Value a, Value b) {
    return a.node() == b.node() ? a.index() < b.index() : a.node()->comes_before(*b.node());
  });
  return invariants;
}

// The invariants as a graph of their own, which takes what the body captures.
std::unique_ptr<Graph> as_graph(const Graph& body, int64_t first_captured, const Invariants& invariants) {
  std::unique_ptr<Graph> graph = body.make_region("invariants");
  std::map<Value, Value> copies;
  for (int64_t i = first_captured; i < body.input_count(); ++i)
    copies[body.input(i)] = graph->add_input(body.input(i).type(), body.input(i).name());
  for (const Node* node : invariants.nodes) {
    const Node* copy = graph->copy_node(*node, [&](Value value) { return copies.at(value); });
    for (int64_t i = 0; i < node->result_count(); ++i)
      copies[node->result(i)] = copy->result(i);
  }
  std::vector<Value> outputs;
  for (Value wanted : invariants.wanted)
    outputs.push_back(copies.at(wanted));
  graph->set_outputs(outputs);
  return graph;
}

// Which input of the body is the first that stands for a captured value.
int64_t first_captured(const Node& loop) {
  return static_cast<int64_t>(leading_count(loop) + carried_count(loop) + scanned_count(loop));
}

// Whether they make sense for the sizes that are known outside; if not, the model can never run.
bool fits_outside(const Node& loop, const Invariants& invariants) {
  Graph scratch;
  std::vector<Value> arguments;
  for (Value captured : loop.ins("captured"))
    arguments.push_back(scratch.add_input(captured.type(), captured.name()));
  try {
    scratch.inline_graph(*as_graph(loop.region("body"), first_captured(loop), invariants), arguments);
    return true;
  } catch (const UserError&) {
    return false;
  }
}

void hoist(Node* loop, const Invariants& invariants) {
  Graph &graph = loop->graph(), &body = loop->region("body");
  Remade remade(*loop);
  {
    const InsertBefore here(loop);
    const std::unique_ptr<Graph> apart = as_graph(body, first_captured(*loop), invariants);
    const std::vector<Value> arguments = loop->ins("captured");
    const std::vector<Value> values = graph.inline_graph(*apart, arguments);
    for (size_t i = 0; i < values.size(); ++i) {
      const Value wanted = invariants.wanted[i], input = body.add_input(wanted.type(), wanted.name());
      wanted.replace_all_uses(input);
      remade.captured.push_back({values[i], static_cast<size_t>(input.index())});
    }
  }
  hand_over(loop, remade, make_anew(loop, remade));
  graph.erase(loop);
}

void hoist_in(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes()) {
    for (const auto& region : node->regions())
      hoist_in(*region, journal);
    if (!node->is("while") && !node->is("scan"))
      continue;
    const Invariants invariants = find_invariants(node->region("body"), first_captured(*node));
    if (invariants.wanted.empty())
      continue;
    if (!runs_at_least_once(*node)) {
      journal.declined(kRule, *node, "it may have no iterations, and then none of it would be computed");
      continue;
    }
    if (!fits_outside(*node, invariants)) {
      journal.declined(kRule, *node, "its body does not fit the sizes it is given");
      continue;
    }
    if (!journal.is_open())
      return;
    std::vector<Node*> replaced = invariants.nodes;
    replaced.push_back(node);
    journal.applied(kRule, replaced, Numerics::BitExact);
    hoist(node, invariants);
  }
}

}  // namespace

void hoist_invariants(Graph& graph, Journal& journal) { hoist_in(graph, journal); }

}  // namespace tenon
