// held_numbers.cpp — how many numbers a model holds, however they are made.
#include <algorithm>
#include <unordered_set>

#include "verify/verify.h"

namespace tenon {
namespace {

bool is_contraction(const Node& node) { return node.is("matmul") || node.is("conv"); }

// Follows what is fixed in one graph, and where integers sum up products. Fixed is what is made of constants,
// parameters and sizes alone, and of the inputs from one on, which a node around it feeds with what is fixed.
class Fixed {
 public:
  explicit Fixed(const Graph& graph, const std::vector<bool>& is_fed_fixed) {
    for (Value input : graph.inputs())
      if (is_fed_fixed[static_cast<size_t>(input.index())])
        fixed_.insert(input.data());
    for (const Node* node : graph.nodes())
      visit(*node);
  }

  bool contains(Value value) const { return fixed_.contains(value.data()); }
  bool contains_results_of(const Node& node) const {
    return node.result_count() > 0 && contains(node.result());
  }
  // Whether all its elements are the same for certain, so that one number is enough to hold it.
  bool is_uniform(Value value) const { return uniform_.contains(value.data()); }

  // Whether they are numbers of the model: floats, masks, or integers that are weights or biases. Other
  // integers are sizes and indices.
  bool holds_numbers(Value value) const {
    if (!value.type().is_tensor())
      return false;
    if (is_float(value.dtype()) || value.dtype() == DType::Bool)
      return true;
    return is_integer(value.dtype()) && std::ranges::any_of(value.users(), [&](const Node* user) {
             return is_contraction(*user) || (user->is("add") && sums_up_products(*user));
           });
  }

 private:
  void visit(const Node& node) {
    const std::vector<Value> operands = node.operands();
    const bool is_made_of_fixed =
        node.regions().empty() && !node.op().traits.random &&
        std::ranges::all_of(operands, [&](Value operand) { return contains(operand); });
    const bool is_made_of_uniform = is_made_of_fixed && makes_uniform(node);
    for (Value result : node.results()) {
      if (is_made_of_fixed || result.known_ints())
        fixed_.insert(result.data());
      if (is_made_of_uniform)
        uniform_.insert(result.data());
    }
    if (is_contraction(node) || sums_up_products(node))
      sums_of_products_.insert(node.result().data());
  }

  // Whether it adds to sums of products, or gives them another shape.
  bool sums_up_products(const Node& node) const {
    const auto is_sum = [&](Value operand) { return sums_of_products_.contains(operand.data()); };
    if (node.is("add"))
      return std::ranges::any_of(node.operands(), is_sum);
    return node.op().category == Category::Shape && node.op().find_operand("x") &&
           node.ins("x").size() == 1 && is_sum(node.in("x"));
  }

  bool makes_uniform(const Node& node) const {
    if (node.is("constant") || node.is("parameter")) {
      const Literal& literal = node.attr("value");
      return literal.count() == 1 || std::holds_alternative<Literal::Splat>(literal.form());
    }
    const std::vector<Value> operands = node.operands();
    if (node.op().traits.elementwise)
      return std::ranges::all_of(operands, [&](Value operand) { return is_uniform(operand); });
    // Of the ops that move data, only pad has elements besides those of x.
    return node.op().category == Category::Shape && !node.is("pad") && node.op().find_operand("x") &&
           node.ins("x").size() == 1 && is_uniform(node.in("x"));
  }

  std::unordered_set<const ValueData*> fixed_, uniform_, sums_of_products_;
};

// How often the numbers of a value are held.
int64_t times_held(Value value, const Fixed& fixed, SharedNumbers shared) {
  if (!fixed.contains(value) || fixed.is_uniform(value) || !fixed.holds_numbers(value))
    return 0;
  const std::vector<Node*> users = value.users();
  const int64_t readers =
      std::ranges::count_if(users, [&](const Node* user) { return !fixed.contains_results_of(*user); });
  return shared == SharedNumbers::CountForEachReader ? readers : std::min<int64_t>(readers, 1);
}

// Which inputs of a nested graph are the same whenever it runs. The last are those that are handed in as they
// are: all of a branch, and what a loop captures.
std::vector<bool> fed_fixed(const Node& node, const Graph& region, const Fixed& fixed) {
  std::vector<bool> is_fed_fixed(static_cast<size_t>(region.input_count()));
  const std::string_view handed_in = node.is("if") ? "inputs" : "captured";
  if (!node.op().find_operand(handed_in))
    return is_fed_fixed;
  const std::vector<Value> values = node.ins(handed_in);
  for (size_t i = 0; i < values.size(); ++i)
    is_fed_fixed[is_fed_fixed.size() - values.size() + i] = fixed.contains(values[i]);
  return is_fed_fixed;
}

// The operands of a sum or product, of which fixed ones may be brought together: (x + a) + b is x + (a + b).
std::vector<Value> fixed_terms(const Node& node, const Fixed& fixed) {
  std::vector<Value> terms;
  const Node* next = &node;
  while (next != nullptr) {
    const Node* inner = nullptr;
    for (Value operand : next->operands())
      if (fixed.contains(operand))
        terms.push_back(operand);
      else if (!operand.is_input() && &operand.node()->op() == &node.op())
        inner = operand.node();
    next = inner;
  }
  return terms;
}

// How many numbers more the fixed terms of a sum are as one, broadcast to each other: two masks may become
// one.
int64_t growth_as_one(const Node& node, const Fixed& fixed) {
  const auto is_same = [&](const Node* user) { return &user->op() == &node.op(); };
  if (!node.op().traits.elementwise || !node.op().traits.commutative || fixed.contains_results_of(node) ||
      std::ranges::any_of(node.result().users(), is_same))
    return 0;
  int64_t apart = 0;
  Extents together;  // from the last dimension on
  for (Value term : fixed_terms(node, fixed)) {
    const std::optional<Extents> extents = term.shape().extents();
    if (!extents || !fixed.holds_numbers(term))
      return 0;
    apart += element_count(*extents);
    together.resize(std::max(together.size(), extents->size()), 1);
    for (size_t i = 0; i < extents->size(); ++i)
      together[i] = std::max(together[i], (*extents)[extents->size() - 1 - i]);
  }
  return apart == 0 ? 0 : std::max<int64_t>(element_count(together) - apart, 0);
}

int64_t count_in(const Graph& graph, SharedNumbers shared, const std::vector<bool>& is_fed_fixed) {
  const Fixed fixed(graph, is_fed_fixed);
  int64_t count = 0;
  for (const Node* node : graph.nodes()) {
    for (Value result : node->results())
      if (const int64_t times = times_held(result, fixed, shared); times > 0)
        count += times * element_count(result.shape().extents().value_or(Extents{0}));
    if (shared == SharedNumbers::CountForEachReader)
      count += growth_as_one(*node, fixed);
    for (const auto& region : node->regions())
      count += count_in(*region, shared, fed_fixed(*node, *region, fixed));
  }
  return count;
}

}  // namespace

int64_t count_held_numbers(const Graph& graph, SharedNumbers shared) {
  const std::unique_ptr<Graph> plain = graph.clone();
  Journal journal;
  for (const auto& pass : {bind_branches, unroll_loops, remove_dead, merge_equal})
    pass(*plain, journal);
  return count_in(*plain, shared, std::vector<bool>(static_cast<size_t>(graph.input_count())));
}

}  // namespace tenon
