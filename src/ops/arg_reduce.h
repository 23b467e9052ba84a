// arg_reduce.h — where along an axis the greatest or least element stands.
#pragma once

#include "ir/graph.h"
#include "ops/lower.h"
#include "ops/reduce.h"
#include "ops/registry.h"

namespace tenon {

const Family& arg_reduce_ops();

// For lowering: of two pairs of an element and its index, the one with the greatest (or least) element; of
// equals the first, or the last. NaN is preferred to every number, and all to an index below 0.
enum class Choice : uint8_t { Greatest, Least };
loops::Combine preferred_pair(DType dtype, Choice choice, bool last);
DType compared_dtype(DType dtype);  // that elements of such pairs have

// The index of the greatest (or least) element along an axis, which stays with size 1; -1 where
// there is none.
LowerContext::Formula choose_along(LowerContext& c, Value x, int64_t axis, Choice choice, bool last);

Value arg_max(Value x, int64_t axis, Keep keep = Keep::None);
Value arg_min(Value x, int64_t axis, Keep keep = Keep::None);

}  // namespace tenon
