#include "ops/convolve_gradient.h"

#include <algorithm>

#include "ops/data.h"
#include "ops/gradient.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace tenon {
namespace {

// How conv_transpose gets along one dimension from `windows` to `size` elements: how many it takes off at the
// end, and how many it adds. Where sizes are not known it may be up to a stride too many, which are cut off
// afterwards.
std::pair<int64_t, int64_t> end_of(const Slide& slide, const Dim& windows, const Dim& size,
                                   const Dim& kernel) {
  const Dim reached = (windows - 1) * slide.stride + (kernel - 1) * slide.dilation + 1 - slide.before;
  if (const auto beyond = (reached - size).constant())
    return {std::max<int64_t>(*beyond, 0), std::max<int64_t>(-*beyond, 0)};
  return {0, std::max<int64_t>(slide.stride - 1 - slide.after, 0)};
}

Value cut_spatial(Value x, Value like) {
  for (int64_t axis = 2; axis < x.rank(); ++axis)
    x = cut_to(x, like, axis);
  return x;
}

// [batch, groups · channels, …] as [channels, groups · batch, …].
Value swap_batch_and_channels(Value x, int64_t groups) {
  std::vector<int64_t> permutation(static_cast<size_t>(x.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  if (groups == 1) {
    std::swap(permutation[0], permutation[1]);
    return transpose(x, permutation);
  }
  Graph& graph = x.graph();
  const Value group_count = int_vector(graph, {groups}), fitting = int_vector(graph, {-1});
  const Value spatial = slice(shape_of(x), 0, 2, kToTheEnd);
  const Value split_channels = reshape(x, concat({size_along(x, 0), group_count, fitting, spatial}, 0));
  permutation = {2, 1, 0};
  for (int64_t axis = 3; axis <= x.rank(); ++axis)
    permutation.push_back(axis);
  const Value swapped = transpose(split_channels, permutation);
  return reshape(swapped, concat({size_along(swapped, 0), fitting, spatial}, 0));
}

}  // namespace

Attributes window_attributes(const Window& window, int64_t groups) {
  Attribute::Ints strides, dilations, pads, after;
  for (const Slide& slide : window.slides) {
    strides.push_back(slide.stride);
    dilations.push_back(slide.dilation);
    pads.push_back(slide.before);
    after.push_back(slide.after);
  }
  pads.insert(pads.end(), after.begin(), after.end());
  return {{"strides", strides}, {"dilations", dilations}, {"pads", pads}, {"groups", groups}};
}

std::optional<Window> explicit_window(const Node& n, Value x, std::span<const Dim> kernel) {
  Window window = window_of(n, x.rank() - 2);
  if (window.padding == Padding::Explicit)
    return window;
  for (size_t i = 0; i < window.slides.size(); ++i) {
    Slide& slide = window.slides[i];
    // In steps of 1, the padding is the same for every size.
    const auto size = slide.stride == 1 ? int64_t{1} : x.dim(static_cast<int64_t>(i) + 2).constant();
    const auto cells = kernel[i].constant();
    if (!size || !cells)
      return std::nullopt;
    std::tie(slide.before, slide.after) = resolve_padding(slide, window.padding, *size, *cells);
  }
  window.padding = Padding::Explicit;
  return window;
}

Value spread_windows(Value dy, Value w, Value x, const Window& window, int64_t groups) {
  Window fitted = window;
  Attribute::Ints more;
  for (size_t i = 0; i < window.slides.size(); ++i) {
    const int64_t axis = static_cast<int64_t>(i) + 2;
    const auto [less, extra] = end_of(window.slides[i], dy.dim(axis), x.dim(axis), w.dim(axis));
    fitted.slides[i].after = less;
    more.push_back(extra);
  }
  Attributes attributes = window_attributes(fitted, groups);
  attributes.insert({"output_padding", more});
  return cut_spatial(dy.graph().create("conv_transpose", {{"x", dy}, {"w", w}}, attributes)->result(), x);
}

Value correlate_windows(Value dy, Value w, Value x, const Window& window, int64_t groups) {
  Window swapped = window;
  for (Slide& slide : swapped.slides)
    std::swap(slide.stride, slide.dilation);
  const Value sums =
      dy.graph()
          .create("conv", {{"x", swap_batch_and_channels(x, groups)}, {"w", swap_batch_and_channels(dy, 1)}},
                  window_attributes(swapped, groups))
          ->result();
  return cut_spatial(swap_batch_and_channels(sums, 1), w);
}

}  // namespace tenon
