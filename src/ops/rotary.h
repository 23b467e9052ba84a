// rotary.h — rotary position embedding: pairs of numbers turned by an angle that depends on the position.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& rotary_ops();

// x is [batch, heads, sequence, size]; cos and sin broadcast to [batch, sequence, half]. The first 2 · half
// numbers of each x are turned in pairs: (i, half + i), or (2i, 2i + 1) when interleaved. The rest stay.
Value rotary(Value x, Value cos, Value sin, bool interleaved);

}  // namespace tenon
