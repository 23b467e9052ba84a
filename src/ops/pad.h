// pad.h — elements repeated, added or moved along axes: pad, tile, reverse_sequence.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& pad_ops();

// `pads` holds how many to add before along each of `axes`, then how many after; negative ones cut off.
// Without a value, zeros are added.
Value pad(Value x, Value pads, const std::vector<int64_t>& axes, Value value = {});
Value tile(Value x, Value repeats);

}  // namespace tenon
