// view.h — the same elements under another shape, and the one way to write it.
//
// What drops dimensions of size 1 is a squeeze, what adds some an unsqueeze, and all else a reshape to a
// constant shape. Where sizes are symbols, a 0 in that shape copies a dimension, and one -1 takes what is
// left:
//
//   f32[n,16,64] as [n,1,16,64]   unsqueeze(x, axes=[1])
//   f32[n,m,64] as [n,m,4,16]     reshape(x, {0, -1, 4, 16}, allow_zero=false)
#pragma once

#include "ir/graph.h"

namespace tenon {

// Whether the node only gives its operand x another shape: reshape, squeeze, unsqueeze.
bool is_view(const Node& node);

// x under this shape, made at the insertion point: x itself where it has it, and nothing where no constant
// says the shape.
Value view(Value x, const Shape& shape);

// Whether the node is what `view` would make.
bool is_written_as_view(const Node& node);

}  // namespace tenon
