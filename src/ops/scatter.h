// scatter.h — a tensor with some of its elements replaced by others, or combined with them.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& scatter_ops();

// `reduction` is none, add, mul, max or min.
Value scatter_elements(Value x, Value indices, Value updates, int64_t axis,
                       std::string_view reduction = "none");
Value scatter_nd(Value x, Value indices, Value updates, std::string_view reduction = "none");

}  // namespace tenon
