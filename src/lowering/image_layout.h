// image_layout.h — the memory layout of an image: the order of its dimensions, and its padding.
#pragma once

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::lowering {

struct ImageLayout {
  std::vector<size_t> order;  // of the dimensions, the outermost first
  // Padding before and after each dimension, in the order of the graph; the buffer may have more after.
  std::vector<int64_t> before, after;

  friend bool operator==(const ImageLayout&, const ImageLayout&) = default;
};

// NHWC where there are enough channels; few stay where they are, as a convolution reads them one by one,
// except int8, which it reads four at a time.
ImageLayout layout_for(const loops::Buffer& buffer);

std::vector<Dim> sizes_in(const ImageLayout& layout, const std::vector<Dim>& sizes);

// An index may be loaded (a gather), as in a resize.
std::vector<loops::Scalar> place_in(const ImageLayout& layout, const std::vector<loops::Scalar>& at);

}  // namespace tenon::lowering
