#include <algorithm>
#include <unordered_map>

#include "base/hash.h"
#include "ir/equal.h"
#include "ops/random.h"
#include "passes/passes.h"

namespace tenon {
namespace {

// Comparing constants that are larger than this, and stand in different places, would read the whole model.
constexpr int64_t kMostCompared = 1 << 20;

// Parameters are not merged, even if they are equal now: they are the user's, by name.
bool can_merge(const Node& node) {
  if (node.op().traits.random || takes_call(node) || node.is("parameter"))
    return false;
  if (!node.is("constant"))
    return true;
  const Literal& literal = node.attr("value");
  return literal.count() * info(literal.dtype()).bytes <= kMostCompared;
}

// The operands; those of a commutative op in an order of their own, so that a + b is b + a.
std::vector<Value> ordered_operands(const Node& node) {
  std::vector<Value> operands = node.operands();
  if (node.op().traits.commutative && operands[1] < operands[0])
    std::swap(operands[0], operands[1]);
  return operands;
}

uint64_t hash_of(const Node& node) {
  uint64_t h = hash_string(node.op().name);
  for (Value operand : ordered_operands(node))
    h = hash_combine(h, reinterpret_cast<uintptr_t>(operand.data()));
  for (const auto& [name, attribute] : node.attributes())
    h = hash_combine(hash_combine(h, hash_string(name)), attribute.hash());
  for (const auto& region : node.regions())
    h = hash_combine(h, structural_hash(*region));
  return h;
}

bool compute_the_same(const Node& a, const Node& b) {
  if (&a.op() != &b.op() || a.attributes() != b.attributes() || a.late_names() != b.late_names() ||
      a.result_count() != b.result_count() || ordered_operands(a) != ordered_operands(b))
    return false;
  for (const OperandDecl& operand : a.op().operands)
    if (a.segment(operand.name) != b.segment(operand.name))
      return false;
  for (size_t i = 0; i < a.regions().size(); ++i)
    if (!difference(*a.regions()[i], *b.regions()[i]).empty())
      return false;
  return true;
}

void merge(Graph& graph, Journal& journal) {
  std::unordered_map<uint64_t, std::vector<Node*>> seen;
  for (Node* node : graph.nodes()) {
    if (!can_merge(*node))
      continue;
    std::vector<Node*>& alike = seen[hash_of(*node)];
    const auto first = std::find_if(alike.begin(), alike.end(),
                                    [&](Node* other) { return compute_the_same(*other, *node); });
    if (first == alike.end()) {
      alike.push_back(node);
      continue;
    }
    if (!journal.is_open())
      return;
    journal.applied("equal", {node, *first}, Numerics::BitExact);
    graph.replace(node, (*first)->results());
  }
}

}  // namespace

void merge_equal(Graph& graph, Journal& journal) {
  // Inner graphs first: nodes around equal ones may then be equal too.
  for (Node* node : graph.nodes())
    for (const auto& region : node->regions())
      merge_equal(*region, journal);
  merge(graph, journal);
}

}  // namespace tenon
