// lower.h — how an op says what its results are made of, element by element:
//
//   void lower_matmul(LowerContext& c) {
//     c.define([&](const Index& i) { … });
//   }
//
// Elements of narrow floats are computed with as f32, and rounded once where a result is defined.
#pragma once

#include "ir/graph.h"
#include "loops/arithmetic.h"
#include "loops/definition.h"

namespace tenon {

using loops::Scalar;
using Index = std::vector<Scalar>;

// The dtype that elements are computed with.
DType wide_dtype(DType dtype);

class LowerContext {
 public:
  explicit LowerContext(const Node& node) : node_(node) {}

  const Node& node() const { return node_; }

  // The element of an operand; wide.
  Scalar in(std::string_view operand, const Index& at) const { return in(node_.in(operand), at); }
  Scalar in(Value operand, const Index& at) const;
  // The same as it is stored.
  Scalar stored(Value operand, const Index& at) const;
  // The element that stands at an index of a larger tensor which the operand is broadcast to.
  Scalar broadcast(std::string_view operand, const Index& at) const {
    return broadcast(node_.in(operand), at);
  }
  Scalar broadcast(Value operand, const Index& at) const;
  // The value. Where it is dynamic whether two sizes are the same, the kernel fails where they are not.
  static Scalar require_equal(const Dim& a, const Dim& b, const Scalar& value);
  // An index along an axis of a size, from that along one which it is broadcast to.
  static Scalar broadcast_index(const Scalar& index, const Dim& size, const Dim& whole);
  // An element as an index: i64, counted from the end where it is negative. The kernel fails where it is out
  // of range.
  Scalar position(const Scalar& element, const Dim& size) const;

  // A result by its elements. They are cast to its dtype.
  using Formula = std::function<Scalar(const Index&)>;
  void define(const Formula& formula) { define(0, formula); }
  void define(int64_t result, const Formula& formula);

  // Intermediate elements, to define others by: what a formula gives, kept, …
  Formula keep(const std::vector<Dim>& sizes, const Formula& formula);
  // … or what values combine to.
  Formula reduce(const std::vector<Dim>& sizes, const std::vector<Dim>& reduced, std::string_view combine,
                 const Scalar& initial,
                 const std::function<Scalar(const Index& at, const Index& over)>& value);
  // The same of several at once, with a combine of their own.
  std::vector<Formula> reduce(
      const std::vector<Dim>& sizes, const std::vector<Dim>& reduced, const loops::Combine& combine,
      const std::vector<Scalar>& initial,
      const std::function<std::vector<Scalar>(const Index& at, const Index& over)>& values);

  // Where the elements depend on each other in another way: a whole nest, which reads and writes buffers of
  // these names.
  static std::string operand_name(int64_t operand);
  static std::string result_name(int64_t result);
  void nest(std::vector<loops::Statement> body);

  // Loops around statements, the outermost first.
  static std::vector<loops::Statement> around(const std::vector<loops::Axis>& axes, loops::Mark mark,
                                              std::vector<loops::Statement> body);
  // Axes of these sizes, with variables of that prefix.
  static std::vector<loops::Axis> axes(const std::vector<Dim>& sizes, std::string_view prefix);

  const std::vector<loops::Definition>& definitions() const { return definitions_; }
  const std::optional<std::vector<loops::Statement>>& statements() const { return statements_; }

 private:
  const Node& node_;
  std::vector<loops::Definition> definitions_;
  std::optional<std::vector<loops::Statement>> statements_;
};

// lower of an elementwise op by its formula on elements: unary<[](const Scalar& x) { return exp(x); }>.
template <auto formula>
void lower_unary(LowerContext& c) {
  c.define([&](const Index& at) { return formula(c.in("x", at)); });
}
template <auto formula>
void lower_binary(LowerContext& c) {
  c.define([&](const Index& at) { return formula(c.broadcast("a", at), c.broadcast("b", at)); });
}

}  // namespace tenon
