// expression.h — sizes as PyTorch writes them: expressions of SymPy.
#pragma once

#include <string_view>

#include "ir/dim.h"

namespace tenon::torch {

// Reads both spellings of SymPy: 2*s0 + 1, and Add(Mul(Integer(2), Symbol('s0', positive=True)), Integer(1)).
// Functions that a size has no word for give an unknown size; text that is no expression is the user's fault.
Dim parse_expression(std::string_view text);

}  // namespace tenon::torch
