// widening_matmul.h — products of matrices whose elements are narrower than the sums: u8 by i8 in i32, as
// programs compute those of quantised matrices, or bf16 in f32.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& widening_matmul_ops();

// a: [..., k], b: [k, n].
Value widening_matmul(Value a, Value b, DType accumulator);

// The attribute of ops that sum in a dtype of their own, and what a node has for it: i32, for integers
// alone, or f32.
AttributeDecl accumulator_attribute();
DType accumulator_of(const Node& node);

}  // namespace tenon
