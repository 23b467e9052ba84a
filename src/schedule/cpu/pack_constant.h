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
// The elements of this dtype that were packed so.
Tensor vnni_unpacked(const Tensor& words, size_t dim, DType dtype, int threads);

// For a constant of these extents.
Extents packed_b_extents(const Extents& extents, const lowering::PackedBLayout& order);
Tensor empty_packed_b(DType dtype, const Extents& extents, const lowering::PackedBLayout& order);

// Packs a slice of it, which begins at `first` along the dimension of the lanes. Only panels in [begin, end)
// are written.
void pack_b_panels(Tensor& panels, const Extents& extents, const lowering::PackedBLayout& order,
                   const Tensor& piece, int64_t first, int64_t begin, int64_t end);

// Pieces of a constant, which are joined along a dimension, in panels. Those that are joined along the lanes
// are packed one by one.
Tensor packed_b(const std::vector<Tensor>& pieces, size_t dim, const lowering::PackedBLayout& order,
                int threads);
// What was packed into such panels: a constant of these extents.
Tensor unpacked_b(const Tensor& panels, const Extents& extents, const lowering::PackedBLayout& order,
                  int threads);

// Packed B of f32 with one reduced dimension, as three bf16 parts that add up to it, the most significant
// first. A word holds two consecutive terms, and words are in blocks of a tile: [3, …, panel, block, word,
// lane]. A partial last block overlaps the one before, with zeros for what that has already.
Extents bf16x3_extents(const Extents& panels);
Tensor split_into_bf16x3(const Tensor& panels, int threads);
// The packed B of these extents whose parts they are: of finite numbers, none of whose parts was too small.
Tensor joined_bf16x3(const Tensor& split, const Extents& panels, int threads);

}  // namespace tenon::schedule
