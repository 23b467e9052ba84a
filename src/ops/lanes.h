// lanes.h — a tensor seen as lanes along one axis: what softmax, cumulative sums and Fourier transforms walk
// over.
#pragma once

#include "tensor/tensor.h"

namespace tenon {

// Element i of the lane that starts at `start` stands at start + i * stride.
struct Lanes {
  Lanes(const Extents& extents, int64_t axis)  // axis counts from the front
      : count_before(element_count({extents.begin(), extents.begin() + axis})),
        length(extents[static_cast<size_t>(axis)]),
        stride(element_count({extents.begin() + axis + 1, extents.end()})) {}

  // Calls f(start) for every lane that has elements, in row-major order of the other axes.
  template <class F>
  void for_each(F&& f) const {
    if (length == 0 || stride == 0)
      return;
    for (int64_t before = 0; before < count_before; ++before)
      for (int64_t after = 0; after < stride; ++after)
        f(static_cast<size_t>(before * length * stride + after));
  }

  int64_t count_before, length, stride;
};

}  // namespace tenon
