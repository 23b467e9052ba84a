// pack_constant.h — constants whose elements lie in another order.
#pragma once

#include <functional>

#include "lowering/kernel_graph.h"
#include "tensor/tensor.h"

namespace tenon::schedule {

// `order` says for each dimension of the result which one of the tensor it is.
Tensor reordered(const Tensor& tensor, const std::vector<size_t>& order);

// For a constant of these extents.
Tensor empty_packed_b(DType dtype, const Extents& extents, const lowering::PackedBLayout& order);

// Puts a piece of it there: all but for the dimension of the lanes, where it begins at `first`. Only panels
// from `begin` to `end` are written.
void pack_b_panels(Tensor& panels, const Extents& extents, const lowering::PackedBLayout& order,
                   const Tensor& piece, int64_t first, int64_t begin, int64_t end);

// PackedB of f32, whose reduced dimension is one, in three parts that add up to them, the first in front. Two
// numbers that are summed one after the other are the bf16 of a word, and words stand in blocks of as many as
// a tile has: [3, …, panel, block, word, lane]. A last block that is not filled begins earlier, and has zeros
// where the one before has them already.
Tensor split_into_bf16x3(const Tensor& panels, int threads);

}  // namespace tenon::schedule
