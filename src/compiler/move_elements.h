// move_elements.h — constants whose elements lie in another order.
#pragma once

#include <functional>

#include "tensor/tensor.h"

namespace tenon {

// `order` says for each dimension of the result which one of the tensor it is.
Tensor reordered(const Tensor& tensor, const std::vector<size_t>& order);

// How a constant lies in panels (see Panels): the order of its dimensions before those of the lanes are cut
// into panels, how many of the last are reduced, how many lanes a panel has, and in how many groups they are.
struct PanelOrder {
  std::vector<size_t> order;
  size_t reduced;
  int64_t lanes;
  int64_t groups = 1;

  size_t lane_dim() const { return order[order.size() - 1 - reduced]; }
  int64_t panels_of_group(int64_t all_lanes) const { return (all_lanes / groups + lanes - 1) / lanes; }
};

// For a constant of these extents.
Tensor empty_panels(DType dtype, const Extents& extents, const PanelOrder& order);

// Puts a piece of it there: all but for the dimension of the lanes, where it begins at `first`. Only panels
// from `begin` to `end` are written.
void move_into_panels(Tensor& panels, const Extents& extents, const PanelOrder& order, const Tensor& piece,
                      int64_t first, int64_t begin, int64_t end);

// Panels of f32, whose reduced dimension is one, in three parts that add up to them, the first in front. Two
// numbers that are summed one after the other are the bf16 of a word, and words stand in blocks of as many as
// a tile has: [3, …, panel, block, word, lane]. A last block that is not filled begins earlier, and has zeros
// where the one before has them already.
Tensor split_panels(const Tensor& panels, int threads);

}  // namespace tenon
