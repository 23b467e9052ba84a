// slice.h — parts of tensors, and tensors put together: slice, concat, split.
#pragma once

#include <limits>

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& slice_ops();

// As the end of a slice: however many there are.
constexpr int64_t kToTheEnd = std::numeric_limits<int64_t>::max();

// Along axes[i] the elements starts[i], starts[i] + steps[i], … before ends[i]; negative ones count from the
// end.
Value slice(Value x, Value starts, Value ends, const std::vector<int64_t>& axes, Value steps = {});
Value slice(Value x, int64_t axis, int64_t start, int64_t end, int64_t step = 1);
Value concat(const std::vector<Value>& parts, int64_t axis);
std::vector<Value> split(Value x, Value sizes, int64_t axis);
std::vector<Value> split(Value x, const std::vector<int64_t>& sizes, int64_t axis);

// The size of one dimension as an i64[1], to build shapes from.
Value size_along(Value x, int64_t axis);

}  // namespace tenon
