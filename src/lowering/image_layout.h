// image_layout.h — how an image lies in memory: in which order its dimensions, and what stands around it.
#pragma once

#include "loops/definition.h"
#include "target/target.h"

namespace tenon::lowering {

struct ImageLayout {
  std::vector<size_t> order;  // of the dimensions, the outermost first
  // How many elements of a border lie before and after each dimension, as the graph orders them.
  std::vector<int64_t> before, after;
  std::optional<loops::Scalar> border = {};  // what they are; 0 where nobody asks
};

// Channels come last where there are enough of them; few are left where they are, as a convolution reads them
// one by one, but for bytes, which it reads four at a time.
ImageLayout layout_for(const loops::Buffer& buffer);

std::vector<Dim> sizes_in(const ImageLayout& layout, const std::vector<Dim>& sizes);

// An index may be an element that is read, as where an image is resized.
std::vector<loops::Scalar> place_in(const ImageLayout& layout, const std::vector<loops::Scalar>& at);

}  // namespace tenon::lowering
