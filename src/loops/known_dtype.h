// known_dtype.h — which dtype a bare number has in the text of a kernel. Printer and parser ask the same
// question, so that what one leaves out the other puts back.
#pragma once

#include <optional>

#include "loops/scalar.h"

namespace tenon::loops {

// The dtype that an expression has whatever it stands in: none for numbers, and what is made of them alone.
inline std::optional<DType> known_dtype(const Scalar& scalar) {
  if (scalar.kind() == Scalar::Kind::Number)
    return std::nullopt;
  if (scalar.kind() != Scalar::Kind::Apply || scalar.function() == Function::Cast ||
      dtype_given(scalar.function()))
    return scalar.dtype();
  for (size_t i = takes_condition(scalar.function()) ? 1 : 0; i < scalar.operands().size(); ++i)
    if (const std::optional<DType> known = known_dtype(scalar.operands()[i]))
      return known;
  return std::nullopt;
}

// The dtype that bare numbers among the operands have (but for a condition), where the whole is
// expected to be of that dtype.
inline std::optional<DType> dtype_of_operands(const Scalar& applied, std::optional<DType> expected) {
  for (size_t i = takes_condition(applied.function()) ? 1 : 0; i < applied.operands().size(); ++i)
    if (const std::optional<DType> known = known_dtype(applied.operands()[i]))
      return known;
  return dtype_given(applied.function()) ? std::nullopt : expected;
}

}  // namespace tenon::loops
