// pairs.h — numbers of 16 bits that are multiplied two at a time: programs compute products in bf16 so.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& pair_ops();

// The last dimension, which is even, half as long.
Value pairs(Value x);
Value matmul_pairs(Value a, Value b);

}  // namespace tenon
