// move_elements.h — constants whose elements lie in another order.
#pragma once

#include <functional>

#include "tensor/tensor.h"

namespace tenon {

// `order` says for each dimension of the result which one of the tensor it is.
Tensor reordered(const Tensor& tensor, const std::vector<size_t>& order);

// How a constant lies in panels (see Panels): the order of its dimensions before those of the lanes are cut
// into panels, how many of the last are reduced, and how many lanes a panel has.
struct PanelOrder {
  std::vector<size_t> order;
  size_t reduced;
  int64_t lanes;

  size_t lane_dim() const { return order[order.size() - 1 - reduced]; }
};

// For a constant of these extents.
Tensor empty_panels(DType dtype, const Extents& extents, const PanelOrder& order);

// Puts a piece of it there: all but for the dimension of the lanes, where it begins at `first`. Only panels
// from `begin` to `end` are written.
void move_into_panels(Tensor& panels, const Extents& extents, const PanelOrder& order, const Tensor& piece,
                      int64_t first, int64_t begin, int64_t end);

}  // namespace tenon
