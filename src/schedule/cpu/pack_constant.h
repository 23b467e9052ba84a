// pack_constant.h — constants in another layout: permuted or packed.
#pragma once

#include <functional>

#include "lowering/kernel_graph.h"
#include "tensor/tensor.h"

namespace tenon::schedule {

// `order` says for each dimension of the result which one of the tensor it is.
Tensor reordered(const Tensor& tensor, const std::vector<size_t>& order);

// Consecutive elements of a tensor along a dimension, four of a byte or two of 16 bits, as words of 32 bits,
// the first lowest.
Tensor vnni_packed(const Tensor& tensor, size_t dim, int threads);

// For a constant of these extents.
Tensor empty_packed_b(DType dtype, const Extents& extents, const lowering::PackedBLayout& order);

// Packs a slice of it, which begins at `first` along the dimension of the lanes. Only panels in [begin, end)
// are written.
void pack_b_panels(Tensor& panels, const Extents& extents, const lowering::PackedBLayout& order,
                   const Tensor& piece, int64_t first, int64_t begin, int64_t end);

// Packed B of f32 with one reduced dimension, as three bf16 parts that add up to it, the most significant
// first. A word holds two consecutive terms, and words are in blocks of a tile: [3, …, panel, block, word,
// lane]. A partial last block overlaps the one before, with zeros for what that has already.
Tensor split_into_bf16x3(const Tensor& panels, int threads);

}  // namespace tenon::schedule
