// select.h — elements chosen, limited or converted, one by one: where, clip, cast, bit_cast.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& select_ops();

Value where(Value condition, Value a, Value b);  // a where the condition holds, else b
Value clip(Value x, Value min, Value max);       // an empty Value is no bound
Value cast(Value x, DType to);
Value in_dtype(Value x, DType dtype);  // x itself where it has this dtype, or is empty
Value bit_cast(Value x, DType to);

}  // namespace tenon
