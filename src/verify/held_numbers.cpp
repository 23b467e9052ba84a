// held_numbers.cpp — how many numbers a model holds, however they are made.
#include <unordered_set>

#include "verify/verify.h"

namespace tenon {
namespace {

// Follows what is fixed in one graph: made of constants, parameters and sizes alone.
class Fixed {
 public:
  explicit Fixed(const Graph& graph) {
    for (const Node* node : graph.nodes())
      visit(*node);
  }

  bool contains(Value value) const { return fixed_.contains(value.data()); }
  bool contains_results_of(const Node& node) const {
    return node.result_count() > 0 && contains(node.result());
  }
  // Whether all its elements are the same for certain, so that one number is enough to hold it.
  bool is_uniform(Value value) const { return uniform_.contains(value.data()); }

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

  std::unordered_set<const ValueData*> fixed_, uniform_;
};

bool is_vector(Value value) {
  const std::vector<Dim>& dims = value.shape().dims();
  return std::ranges::count_if(dims, [](const Dim& dim) { return dim != Dim(1); }) <= 1;
}

// Whether they are numbers of the model: floats, masks, or integers that are weights. Other integers are
// sizes and indices.
bool holds_numbers(Value value) {
  if (!value.type().is_tensor())
    return false;
  if (is_float(value.dtype()) || value.dtype() == DType::Bool)
    return true;
  return is_integer(value.dtype()) && std::ranges::any_of(value.users(), [](const Node* user) {
           return user->is("matmul") || user->is("conv");
         });
}

// How often the numbers of a value are held.
int64_t times_held(Value value, const Fixed& fixed) {
  if (!fixed.contains(value) || fixed.is_uniform(value) || !holds_numbers(value))
    return 0;
  const std::vector<Node*> users = value.users();
  if (users.empty())
    return 1;
  const int64_t times =
      std::ranges::count_if(users, [&](const Node* user) { return !fixed.contains_results_of(*user); });
  return is_vector(value) ? times : std::min<int64_t>(times, 1);
}

int64_t count_in(const Graph& graph) {
  const Fixed fixed(graph);
  int64_t count = 0;
  for (const Node* node : graph.nodes()) {
    for (Value result : node->results())
      if (const int64_t times = times_held(result, fixed); times > 0)
        count += times * element_count(result.shape().extents().value_or(Extents{0}));
    for (const auto& region : node->regions())
      count += count_in(*region);
  }
  return count;
}

}  // namespace

int64_t count_held_numbers(const Graph& graph) {
  const std::unique_ptr<Graph> merged = graph.clone();
  Journal journal;
  merge_equal(*merged, journal);
  return count_in(*merged);
}

}  // namespace tenon
