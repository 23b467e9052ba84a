// generate.h — tensors made from their shape or from a few numbers: fill, range, eye; and triangle, which
// keeps what lies on one side of a diagonal.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& generate_ops();

// The only element of `element` everywhere: a lazy constant where the shape is known.
Value fill(Value shape, const Tensor& element);
// start, start + delta, … before limit: a lazy constant where the three are known integers.
Value range(Value start, Value limit, Value delta);
// Ones on a diagonal of a matrix of this shape (i64[2]), and zeros: `diagonal` 0 is the main one, 1 the next
// above it.
Value eye(Value shape, DType dtype, int64_t diagonal = 0);
Value upper_triangle(Value x, int64_t diagonal = 0);
Value lower_triangle(Value x, int64_t diagonal = 0);

}  // namespace tenon
