// image.cpp — PyTorch's ops that resize, sample and rearrange images.
#include <cmath>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "frontends/torch/window.h"
#include "ops/data.h"
#include "ops/reshape.h"

namespace tenon::torch {
namespace {

// How an op interpolates.
struct Interpolation {
  std::string_view mode, positions, round = "half_down";
  bool antialias = false;
};

// The scales, where the node gives some: in one list, or apart, as scales_h and scales_w.
std::vector<double> scales_of(const NodeView& n, size_t rank) {
  if (n.has("scale_factors"))
    return n.reals("scale_factors");
  if (n.has("scales"))
    return n.reals("scales");
  std::vector<double> scales;
  for (std::string_view name : {"scales_d", "scales_h", "scales_w"})
    if (n.has(name))
      scales.push_back(n.real(name));
  return scales.size() == rank ? scales : std::vector<double>();
}

// The sizes that scales give, where those are whole numbers of elements: then the sizes say the scales as
// well. They are rounded down where only sizes count.
std::optional<std::vector<Size>> whole_sizes(Value x, const std::vector<double>& scales, bool rounds) {
  std::vector<Size> sizes;
  for (size_t i = 0; i < scales.size(); ++i) {
    const auto size = x.dim(static_cast<int64_t>(i) + 2).constant();
    const double scaled = size ? static_cast<double>(*size) * scales[i] : 0.5;
    if (!size || (scaled != std::floor(scaled) && !rounds))
      return std::nullopt;
    sizes.emplace_back(static_cast<int64_t>(std::floor(scaled)));
  }
  return sizes;
}

// The operand that says how large the result is.
Operand size_operand(const NodeView& n, Value x, bool aligns_corners) {
  const auto spatial = static_cast<size_t>(x.rank() - 2);
  const std::vector<double> scales = scales_of(n, spatial);
  if (!scales.empty() && scales.size() != spatial)
    throw user_error("{}: {} scales for {}", n.op(), scales.size(), x.type());
  if (scales.empty()) {
    const std::vector<Size> sizes = n.sizes("output_size");
    if (sizes.size() != spatial)
      throw user_error("{}: output_size has {} numbers for {}", n.op(), sizes.size(), x.type());
    return {"sizes", n.vector(sizes)};
  }
  n.ignore("output_size");
  if (const auto sizes = whole_sizes(x, scales, aligns_corners))
    return {"sizes", n.vector(*sizes)};
  if (aligns_corners)
    throw unsupported("{}: corners that are aligned, by a scale of dynamic sizes", n.op());
  return {"scales", constant(n.graph(), Tensor::of(std::vector<float>(scales.begin(), scales.end())))};
}

std::vector<Value> resized(const NodeView& n, const Interpolation& interpolation) {
  const Value x = n.tensor(n.has("input") ? "input" : "self");
  const int64_t rank = n.rank_of(x);
  if (rank < 3)
    throw user_error("{}: its input is {}", n.op(), x.type());
  return n.make("resize", {{"x", x}, size_operand(n, x, interpolation.positions == "align_corners")},
                {{"axes", axes_between(2, rank)},
                 {"mode", interpolation.mode},
                 {"positions", interpolation.positions},
                 {"round", interpolation.round},
                 {"antialias", interpolation.antialias},
                 {"exclude_outside", interpolation.antialias},
                 {"cubic_a", interpolation.antialias ? -0.5 : -0.75}});
}

Convert nearest(std::string_view positions, std::string_view round) {
  return [=](const NodeView& n) { return resized(n, {"nearest", positions, round}); };
}
Convert blended(std::string_view mode, bool antialias = false) {
  return [=](const NodeView& n) {
    const bool corners = n.flag("align_corners", false);
    if (corners && antialias)
      throw unsupported("{}: corners that are aligned", n.op());
    return resized(n, {mode, corners ? "align_corners" : "half_pixel", "half_down", antialias});
  };
}

template <size_t N>
std::string_view word(const NodeView& n, std::string_view name, const std::string_view (&words)[N]) {
  const int64_t number = n.integer(name, 0);
  if (number < 0 || number >= static_cast<int64_t>(N))
    throw user_error("{}: {} is {}", n.op(), name, number);
  return words[number];
}

std::vector<Value> convert_grid_sampler(const NodeView& n) {
  constexpr int64_t kCubic = 2, kBorder = 1;
  if (n.integer("interpolation_mode", 0) == kCubic && n.integer("padding_mode", 0) == kBorder)
    throw unsupported("{}: bicubic, of an image whose border goes on", n.op());
  return n.make("grid_sample", {{"x", n.tensor("input")}, {"grid", n.tensor("grid")}},
                {{"mode", word(n, "interpolation_mode", {"linear", "nearest", "cubic"})},
                 {"outside", word(n, "padding_mode", {"zeros", "border", "reflection"})},
                 {"align_corners", n.flag("align_corners", false)}});
}

std::vector<Value> convert_grid_sampler_backward(const NodeView& n) {
  return wanted_gradients(
      n, gradients(n, convert_grid_sampler, {{"input", n.tensor("input")}, {"grid", n.tensor("grid")}},
                   {n.tensor("grad_output")}));
}

Convert resize_backward(Convert forward) {
  return gradient_by_size_of(std::move(forward), "self", "input_size");
}

std::vector<Value> convert_affine_grid(const NodeView& n) {
  return n.make("affine_grid", {{"theta", n.tensor("theta")}, {"size", n.vector(n.sizes("size"))}},
                {{"align_corners", n.flag("align_corners", false)}});
}

std::vector<Value> convert_col2im(const NodeView& n) {
  const std::vector<int64_t> ones = {1, 1}, zeros = {0, 0};
  return n.make("col2im",
                {{"x", n.tensor("self")},
                 {"image_shape", n.vector(n.sizes("output_size"))},
                 {"block_shape", n.vector(n.sizes("kernel_size"))}},
                {{"strides", for_each_axis(n, "stride", 2, ones)},
                 {"dilations", for_each_axis(n, "dilation", 2, ones)},
                 {"pads", on_both_sides(for_each_axis(n, "padding", 2, zeros))}});
}

// --- channels and pixels

// The last three dimensions, which must be known; those before them stay.
struct Planes {
  std::vector<int64_t> before;
  int64_t channels, height, width;

  Planes(const NodeView& n, Value x) {
    if (n.rank_of(x) < 3)
      throw user_error("{}: its input is {}", n.op(), x.type());
    std::vector<int64_t> last;
    for (int64_t axis = -3; axis < 0; ++axis) {
      const auto size = x.dim(axis).constant();
      if (!size)
        throw unsupported("{}: {}, whose sizes are dynamic", n.op(), x.type());
      last.push_back(*size);
    }
    before.assign(static_cast<size_t>(x.rank() - 3), 0);  // copied
    channels = last[0];
    height = last[1];
    width = last[2];
  }
};

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The order of the leading dimensions, then these, which count from behind them.
Value reorder(Value x, size_t before, const std::vector<int64_t>& order) {
  std::vector<int64_t> permutation = axes_between(0, static_cast<int64_t>(before));
  for (int64_t axis : order)
    permutation.push_back(static_cast<int64_t>(before) + axis);
  return transpose(x, permutation);
}

std::vector<Value> convert_pixel_shuffle(const NodeView& n) {
  const Value x = n.tensor("self");
  const Planes p(n, x);
  const int64_t r = n.integer("upscale_factor");
  if (r < 1 || p.channels % (r * r) != 0)
    throw user_error("pixel_shuffle: {} by {}", x.type(), r);
  const Value split = reshape_copying(x, joined(p.before, {p.channels / (r * r), r, r, p.height, p.width}));
  const Value turned = reorder(split, p.before.size(), {0, 3, 1, 4, 2});
  return {reshape_copying(turned, joined(p.before, {p.channels / (r * r), p.height * r, p.width * r}))};
}

std::vector<Value> convert_pixel_unshuffle(const NodeView& n) {
  const Value x = n.tensor("self");
  const Planes p(n, x);
  const int64_t r = n.integer("downscale_factor");
  if (r < 1 || p.height % r != 0 || p.width % r != 0)
    throw user_error("pixel_unshuffle: {} by {}", x.type(), r);
  const Value split = reshape_copying(x, joined(p.before, {p.channels, p.height / r, r, p.width / r, r}));
  const Value turned = reorder(split, p.before.size(), {0, 2, 4, 1, 3});
  return {reshape_copying(turned, joined(p.before, {p.channels * r * r, p.height / r, p.width / r}))};
}

std::vector<Value> convert_channel_shuffle(const NodeView& n) {
  const Value x = n.tensor("self");
  const Planes p(n, x);
  const int64_t groups = n.integer("groups");
  if (groups < 1 || p.channels % groups != 0)
    throw user_error("channel_shuffle: {} in {} groups", x.type(), groups);
  const Value split = reshape_copying(x, joined(p.before, {groups, p.channels / groups, p.height, p.width}));
  const Value turned = reorder(split, p.before.size(), {1, 0, 2, 3});
  return {reshape_copying(turned, joined(p.before, {p.channels, p.height, p.width}))};
}

}  // namespace

const Conversions& image_conversions() {
  static const Conversions conversions = {
      {"_upsample_bicubic2d_aa", blended("cubic", true)},
      {"_upsample_bicubic2d_aa_backward", resize_backward(blended("cubic", true))},
      {"_upsample_bilinear2d_aa", blended("linear", true)},
      {"_upsample_bilinear2d_aa_backward", resize_backward(blended("linear", true))},
      {"_upsample_nearest_exact1d", nearest("half_pixel", "half_up")},
      {"_upsample_nearest_exact1d_backward", resize_backward(nearest("half_pixel", "half_up"))},
      {"_upsample_nearest_exact2d", nearest("half_pixel", "half_up")},
      {"_upsample_nearest_exact2d_backward", resize_backward(nearest("half_pixel", "half_up"))},
      {"_upsample_nearest_exact3d", nearest("half_pixel", "half_up")},
      {"_upsample_nearest_exact3d_backward", resize_backward(nearest("half_pixel", "half_up"))},
      {"affine_grid_generator", convert_affine_grid},
      {"channel_shuffle", convert_channel_shuffle},
      {"col2im", convert_col2im},
      {"grid_sampler", convert_grid_sampler},
      {"grid_sampler_2d", convert_grid_sampler},
      {"grid_sampler_2d_backward", convert_grid_sampler_backward},
      {"grid_sampler_3d", convert_grid_sampler},
      {"grid_sampler_3d_backward", convert_grid_sampler_backward},
      {"pixel_shuffle", convert_pixel_shuffle},
      {"pixel_unshuffle", convert_pixel_unshuffle},
      {"upsample_bicubic2d", blended("cubic")},
      {"upsample_bicubic2d_backward", resize_backward(blended("cubic"))},
      {"upsample_bilinear2d", blended("linear")},
      {"upsample_bilinear2d_backward", resize_backward(blended("linear"))},
      {"upsample_linear1d", blended("linear")},
      {"upsample_linear1d_backward", resize_backward(blended("linear"))},
      {"upsample_nearest1d", nearest("asymmetric", "down")},
      {"upsample_nearest1d_backward", resize_backward(nearest("asymmetric", "down"))},
      {"upsample_nearest2d", nearest("asymmetric", "down")},
      {"upsample_nearest2d_backward", resize_backward(nearest("asymmetric", "down"))},
      {"upsample_nearest3d", nearest("asymmetric", "down")},
      {"upsample_nearest3d_backward", resize_backward(nearest("asymmetric", "down"))},
      {"upsample_trilinear3d", blended("linear")},
      {"upsample_trilinear3d_backward", resize_backward(blended("linear"))},
  };
  return conversions;
}

}  // namespace tenon::torch
