// arg_reduce.h — where along an axis the greatest or least element stands.
#pragma once

#include "ir/graph.h"
#include "ops/lower.h"
#include "ops/reduce.h"
#include "ops/registry.h"

namespace tenon {

const Family& arg_reduce_ops();

// For lowering: the index of the greatest (or least) element along an axis, which stays with size 1; -1 where
// there is none.
enum class Choice : uint8_t { Greatest, Least };
LowerContext::Formula choose_along(LowerContext& c, Value x, int64_t axis, Choice choice, bool last);

Value arg_max(Value x, int64_t axis, Keep keep = Keep::None);
Value arg_min(Value x, int64_t axis, Keep keep = Keep::None);

}  // namespace tenon
