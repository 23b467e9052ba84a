// vnni_pack.h — numbers that are multiplied several at a time, as words of 32 bits: programs compute
// products of quantised matrices so, and those in bf16.
#pragma once

#include "ir/graph.h"
#include "loops/scalar.h"
#include "ops/registry.h"

namespace tenon {

class LowerContext;

const Family& vnni_pack_ops();

Value words(Value x);
Value matmul_words(Value a, Value b);

// Of a node that multiplies rows of words with one matrix of them.
Type type_of_packed_product(const Node& node, DType dtype);
void lower_packed_product(LowerContext& context, loops::Function product);

}  // namespace tenon
