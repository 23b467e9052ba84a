// reshape.h — the same elements under another shape or order: reshape, squeeze and its inverse, transpose,
// broadcast; and the shape of a tensor as a value.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& reshape_ops();

Value reshape(Value x, Value shape);
Value reshape(Value x, const std::vector<int64_t>& shape);  // at most one -1: whatever makes the count right
Value squeeze(Value x, const std::vector<int64_t>& axes);
Value unsqueeze(Value x, const std::vector<int64_t>& axes);  // axes of the result
Value transpose(Value x, const std::vector<int64_t>& permutation);
Value transpose_last_two(Value x);
Value broadcast_to(Value x, Value shape);  // to the shape that x's and `shape` broadcast to
Value shape_of(Value x);                   // i64[rank]

}  // namespace tenon
