// gather.h — elements picked by index: slices along an axis, single elements, or what tuples point at.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& gather_ops();

Value gather(Value x, Value indices, int64_t axis);
Value gather_elements(Value x, Value indices, int64_t axis);
Value gather_nd(Value x, Value indices, int64_t batch_dims = 0);

}  // namespace tenon
