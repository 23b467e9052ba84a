#include "lowering/image_layout.h"

#include <algorithm>
#include <numeric>

#include "loops/arithmetic.h"
#include "lowering/image_access.h"

namespace tenon::lowering {

using loops::Scalar;

namespace {

constexpr int64_t kLeastBytes = 4;  // of a packed word

}  // namespace

ImageLayout layout_for(const loops::Buffer& buffer) {
  const std::vector<Dim>& sizes = buffer.sizes;
  ImageLayout layout{.order = std::vector<size_t>(sizes.size()),
                     .before = std::vector<int64_t>(sizes.size()),
                     .after = std::vector<int64_t>(sizes.size())};
  std::iota(layout.order.begin(), layout.order.end(), 0);
  const int64_t least = info(buffer.dtype).bits == 8 ? kLeastBytes : kLeastChannels;
  if (sizes[1].constant().value_or(least) >= least)
    std::rotate(layout.order.begin() + 1, layout.order.begin() + kFirstSpatial, layout.order.end());
  return layout;
}

std::vector<Dim> sizes_in(const ImageLayout& layout, const std::vector<Dim>& sizes) {
  std::vector<Dim> ordered;
  for (size_t dim : layout.order)
    ordered.push_back(sizes[dim] + layout.before[dim] + layout.after[dim]);
  return ordered;
}

std::vector<Scalar> place_in(const ImageLayout& layout, const std::vector<Scalar>& at) {
  std::vector<Scalar> ordered;
  for (size_t dim : layout.order)
    ordered.push_back(layout.before[dim] == 0 ? at[dim] : at[dim] + Scalar::index(layout.before[dim]));
  return ordered;
}

}  // namespace tenon::lowering
