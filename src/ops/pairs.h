// pairs.h — numbers of 16 bits that are multiplied two at a time: programs compute products in bf16 so.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& pair_ops();

// Of words; see vnni_pack.h.
Value matmul_pairs(Value a, Value b);

}  // namespace tenon
