// promotion.h — PyTorch's type promotion: which dtype an op on tensors and numbers computes in.
#pragma once

#include <variant>
#include <vector>

#include "ir/graph.h"

namespace tenon::torch {

// What an operand may be: a tensor, or a number of Python's, which yields to the dtype of tensors of its
// kind.
using Number = std::variant<bool, int64_t, double>;
class Term {
 public:
  Term(Value tensor) : value_(tensor) {}    // NOLINT: a tensor is a term
  Term(Number number) : number_(number) {}  // NOLINT: so is a number
  Term(double number) : number_(number) {}  // NOLINT
  // A size that the graph computes: a number of Python's, though it is held as a value.
  static Term size(Value value) {
    Term term(value);
    term.wrapped_ = true;
    return term;
  }

  bool is_tensor() const { return bool(value_) && !wrapped_; }
  bool is_number() const { return !is_tensor(); }
  Value value() const { return value_; }  // empty for a number that is known
  const Number& number() const { return number_; }
  DType dtype() const;  // of a number: bool, i64 or f32

 private:
  Value value_ = {};
  Number number_ = false;
  bool wrapped_ = false;
};

// The dtype that both can be converted to: torch.promote_types.
DType promote_types(DType a, DType b);
// The dtype of the result of an op: torch.result_type, for any number of operands.
DType result_type(const std::vector<Term>& terms);

// A term in a dtype, as a value of the graph.
Value as_value(Graph& graph, const Term& term, DType dtype);

// The dtype of an op on floats: integers are computed in the default dtype.
inline DType float_type(DType dtype) { return is_float(dtype) ? dtype : DType::F32; }

}  // namespace tenon::torch
