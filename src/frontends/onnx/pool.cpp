// pool.cpp — ONNX pools.
#include "ops/pool.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/window_attributes.h"
#include "frontends/precision.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/pad.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

Attributes pool_attributes(const NodeView& n, Value x) {
  const std::vector<int64_t> kernel = n.integers("kernel_shape");
  Attributes attributes = window_attributes(n, x, std::vector<Dim>(kernel.begin(), kernel.end()));
  attributes.emplace("kernel", kernel);
  // Rounding up is said for explicit pads only.
  attributes.emplace("round_up", n.flag("ceil_mode", false) && read_auto_pad(n) == AutoPad::NotSet);
  return attributes;
}

std::vector<Value> convert_max_pool(const NodeView& n) {
  Attributes attributes = pool_attributes(n, n.in(0));
  attributes.emplace("column_major", n.flag("storage_order", false));
  return n.make("max_pool", {{"x", n.in(0)}}, attributes);
}

std::vector<Value> convert_average_pool(const NodeView& n) {
  Attributes attributes = pool_attributes(n, n.in(0));
  attributes.emplace("count_padding", n.flag("count_include_pad", false));
  return n.make("average_pool", {{"x", n.in(0)}}, attributes);
}

// The exponent is a float in opset 1.
double exponent(const NodeView& n) {
  return n.opset() < 2 ? n.real("p", 2) : static_cast<double>(n.integer("p", 2));
}

std::vector<Value> convert_lp_pool(const NodeView& n) {
  Attributes attributes = pool_attributes(n, n.in(0));
  attributes.emplace("p", exponent(n));
  return n.make("lp_pool", {{"x", n.in(0)}}, attributes);
}

Axes spatial_axes(const NodeView& n, Value x) { return axes_between(2, 2 + spatial_rank(n, x)); }

std::vector<Value> convert_global_average_pool(const NodeView& n) {
  return {reduce_mean(n.in(0), spatial_axes(n, n.in(0)), Keep::Dims)};
}

std::vector<Value> convert_global_max_pool(const NodeView& n) {
  return {reduce_max(n.in(0), spatial_axes(n, n.in(0)), Keep::Dims)};
}

std::vector<Value> convert_global_lp_pool(const NodeView& n) {
  const double p = exponent(n);
  const Value x = n.in(0), powers = pow(tenon::abs(widened(x)), p);
  return {in_dtype(pow(reduce_sum(powers, spatial_axes(n, x), Keep::Dims), 1 / p), x.dtype())};
}

// The shape that pooling came from: (size - 1) · stride + kernel - pads. A shape that the model asks for has
// its extra elements at the end.
std::vector<Value> convert_max_unpool(const NodeView& n) {
  const Value x = n.in(0);
  const auto rank = static_cast<size_t>(spatial_rank(n, x));
  const std::vector<int64_t> kernel = n.integers("kernel_shape"),
                             strides = n.integers("strides", std::vector<int64_t>(rank, 1)),
                             pads = n.integers("pads", std::vector<int64_t>(2 * rank, 0));
  if (kernel.size() != rank || strides.size() != rank || pads.size() != 2 * rank)
    throw user_error(
        "MaxUnpool: kernel_shape, strides and pads are [{}], [{}] and [{}] for {} spatial dimensions",
        fmt::join(kernel, ","), fmt::join(strides, ","), fmt::join(pads, ","), rank);
  constexpr int64_t limit = int64_t{1} << 31;
  for (const auto* list : {&kernel, &strides, &pads})
    for (int64_t each : *list)
      if (each < 0 || each >= limit)
        throw user_error("MaxUnpool: {} among kernel_shape, strides and pads is out of range", each);
  std::vector<int64_t> less = {0, 0}, factor = {1, 1}, more = {0, 0};
  for (size_t i = 0; i < rank; ++i) {
    less.push_back(1);
    factor.push_back(strides[i]);
    more.push_back(kernel[i] - pads[i] - pads[rank + i]);
  }
  const auto vector = [&](const std::vector<int64_t>& values) { return int_vector(n.graph(), values); };
  const Value shape = (shape_of(x) - vector(less)) * vector(factor) + vector(more);
  const Value y = n.make("max_unpool", {{"x", x}, {"indices", n.in(1)}, {"shape", shape}}).front();
  const Value wanted = n.maybe(2);
  if (!wanted)
    return {y};
  const Value none = vector(std::vector<int64_t>(rank + 2, 0));
  return {pad(y, concat({none, wanted - shape}, 0), axes_between(0, x.rank()))};
}

// What one region is pooled to, and how its corners are read.
Attributes region_attributes(const NodeView& n, const std::vector<int64_t>& size) {
  return {{"size", size}, {"scale", n.real("spatial_scale", 1)}};
}

std::vector<Value> convert_roi_align(const NodeView& n) {
  Attributes attributes = region_attributes(n, {n.integer("output_height", 1), n.integer("output_width", 1)});
  attributes.emplace("mode", n.translate<std::string>("mode", "avg", {{"avg", "mean"}, {"max", "max"}}));
  attributes.emplace("samples", n.integer("sampling_ratio", 0));
  // Before opset 16, coordinates were always those of centres.
  attributes.emplace("half_pixel", n.translate<bool>("coordinate_transformation_mode",
                                                     n.opset() < 16 ? "output_half_pixel" : "half_pixel",
                                                     {{"half_pixel", true}, {"output_half_pixel", false}}));
  return n.make("roi_align", {{"x", n.in(0)}, {"regions", n.in(1)}, {"images", n.in(2)}}, attributes);
}

std::vector<Value> convert_max_roi_pool(const NodeView& n) {
  return n.make("max_roi_pool", {{"x", n.in(0)}, {"regions", n.in(1)}},
                region_attributes(n, n.integers("pooled_shape")));
}

}  // namespace

const Conversions& pool_conversions() {
  static const Conversions conversions = {
      {"MaxPool", convert_max_pool},
      {"AveragePool", convert_average_pool},
      {"LpPool", convert_lp_pool},
      {"GlobalAveragePool", convert_global_average_pool},
      {"GlobalMaxPool", convert_global_max_pool},
      {"GlobalLpPool", convert_global_lp_pool},
      {"MaxUnpool", convert_max_unpool},
      {"RoiAlign", convert_roi_align},
      {"MaxRoiPool", convert_max_roi_pool},
  };
  return conversions;
}

}  // namespace tenon::onnx
