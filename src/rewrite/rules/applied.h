// applied.h — one function that is applied to several values: the same op with the same numbers beside them.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Of an elementwise node whose other operands are single fixed numbers, the operand that has the shape of the
// result.
Value applied_to(const Node& node);

// Whether both nodes have such an operand, and differ in nothing else.
bool is_same_function(const Node& a, const Node& b);

// The function of another value of the same rank, made at the insertion point.
Value apply_to(const Node& function, Value x);

}  // namespace tenon
