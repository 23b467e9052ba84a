// arg_reduce.h — where along an axis the greatest or least element stands.
#pragma once

#include "ir/graph.h"
#include "ops/reduce.h"
#include "ops/registry.h"

namespace tenon {

const Family& arg_reduce_ops();

Value arg_max(Value x, int64_t axis, Keep keep = Keep::None);
Value arg_min(Value x, int64_t axis, Keep keep = Keep::None);

}  // namespace tenon
