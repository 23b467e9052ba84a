// cumulative.h — running sums and products along an axis.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& cumulative_ops();

Value cumulative_sum(Value x, int64_t axis);
Value cumulative_prod(Value x, int64_t axis);

}  // namespace tenon
