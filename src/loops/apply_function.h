// apply_function.h — the meaning of the functions that expressions are made of, number by number.
#pragma once

#include "loops/scalar.h"

namespace tenon::loops {

// As close as the dtype comes: rounded, or reduced to its low bits.
Number fitted(DType dtype, const Number& value);

// Whether a condition holds.
inline bool holds(const Number& condition) { return std::get<uint64_t>(condition) != 0; }

// What the function gives, in this dtype. A requirement that does not hold is a user_error.
Number apply_function(Function function, DType dtype, std::span<const Number> operands);

}  // namespace tenon::loops
