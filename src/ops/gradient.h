// gradient.h — what an op's gradient is written with. A formula looks like the maths:
//
//   // Written with y rather than x, so that x can be freed early.
//   std::vector<Operand> grad(const GradContext& n) {
//     const Value y = n.out(), dy = n.dy();
//     return {{"x", y * (dy - reduce_sum(y * dy, {n.attr("axis")}, Keep::Dims))}};
//   }
//
// dy is the gradient of a loss with respect to y; the formula gives those with respect to the operands. One
// that has the shape its operand was broadcast to is summed back by who calls the formula.
#pragma once

#include "ir/graph.h"

namespace tenon {

class GradContext {
 public:
  // Adds to a graph the gradients with respect to `wanted`, from those of its outputs; an empty Value is
  // none.
  using Backpropagate = std::vector<Value> (*)(Graph& graph, const std::vector<Value>& output_gradients,
                                               const std::vector<Value>& wanted);

  GradContext(const Node& node, std::vector<Value> dy, std::vector<bool> wanted, Backpropagate backpropagate)
      : node_(node), dy_(std::move(dy)), wanted_(std::move(wanted)), backpropagate_(backpropagate) {}

  const Node& node() const { return node_; }
  Graph& graph() const { return node_.graph(); }
  Value in(std::string_view name) const { return node_.in(name); }
  std::vector<Value> ins(std::string_view name) const { return node_.ins(name); }
  bool has(std::string_view name) const { return node_.has(name); }
  Value out(int64_t index = 0) const { return node_.result(index); }
  const Attribute& attr(std::string_view name) const { return node_.attr(name); }

  // The gradient with respect to a result; an empty Value where nothing depends on it.
  Value dy(int64_t index = 0) const { return dy_[static_cast<size_t>(index)]; }
  // The same, but zeros where nothing depends on it.
  Value dy_or_zeros(int64_t index) const;
  // Whether the gradient with respect to this operand, or any of these, is asked for.
  bool wants(std::string_view name) const;
  // The same of one operand of those that a name stands for.
  bool wants(std::string_view name, size_t index) const { return wanted_[node_.segment(name).first + index]; }

  // The first result of the same op with the same attributes, but other operands in place of those named.
  Value repeat(const std::vector<Operand>& instead) const;

  // For nested graphs, which the formulas of control flow differentiate.
  std::vector<Value> backpropagate(Graph& graph, const std::vector<Value>& output_gradients,
                                   const std::vector<Value>& wanted) const {
    return backpropagate_(graph, output_gradients, wanted);
  }

  // The error of a formula that does not cover a case: "OP: REASON"; who calls it adds the node.
  UnsupportedError decline(const std::string& reason) const;

 private:
  const Node& node_;
  std::vector<Value> dy_;
  std::vector<bool> wanted_;  // by operand
  Backpropagate backpropagate_;
};

// The grad of ops that are constant wherever they are continuous: the gradient is zero. docs/gradients.md
// lists them.
std::vector<Operand> no_gradient(const GradContext& n);

// The grad of an elementwise op of x by its derivative, a formula of x and y: dx = dy · derivative.
template <auto derivative>
std::vector<Operand> chain(const GradContext& n) {
  return {{"x", n.dy() * derivative(n.in("x"), n.out())}};
}

// Whether a value has a gradient: a tensor of floats, or something that may hold one.
bool is_differentiable(const Type& type);

// The sum of `gradient` over what broadcasting repeated, so that it has the shape of `like`. Where it
// is dynamic which sizes of `like` are 1, so is the sum.
Value sum_to(Value gradient, Value like);

Value zeros_like(Value x);
Value ones_like(Value x);
// `x` where the condition holds, else 0.
Value keep_where(Value condition, Value x);

// The number of elements of x along axes, as a scalar of x's dtype.
Value count_along(Value x, const std::vector<int64_t>& axes);

// x as a matrix: all dimensions but the last as one.
Value as_rows(Value x);

// The first elements of x along an axis, as many as `like` has there.
Value cut_to(Value x, Value like, int64_t axis);

// For what moves elements: 0, 1, … in the shape of x. What a moving op makes of these says where the elements
// of its result came from …
Value positions_in(Value x);
// … and there their gradients are added up, in the shape of x.
Value add_at_positions(Value gradient, Value positions, Value x);

}  // namespace tenon
