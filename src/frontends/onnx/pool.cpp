// pool.cpp — ONNX pools.
#include "ops/pool.h"

#include <numeric>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/window_attributes.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

Attributes pool_attributes(const NodeView& n, Value x) {
  const std::vector<int64_t> kernel = n.integers("kernel_shape");
  Attributes attributes = window_attributes(n, x, std::vector<Dim>(kernel.begin(), kernel.end()));
  attributes.emplace("kernel", kernel);
  // Rounding up is said for explicit pads only.
  const std::string mode = n.text("auto_pad", "NOTSET");
  attributes.emplace("round_up", n.flag("ceil_mode", false) && (mode == "NOTSET" || mode.empty()));
  return attributes;
}

std::vector<Value> max_pool(const NodeView& n) {
  Attributes attributes = pool_attributes(n, n.in(0));
  attributes.emplace("column_major", n.flag("storage_order", false));
  return n.make("max_pool", {{"x", n.in(0)}}, attributes);
}

std::vector<Value> average_pool(const NodeView& n) {
  Attributes attributes = pool_attributes(n, n.in(0));
  attributes.emplace("count_padding", n.flag("count_include_pad", false));
  return n.make("average_pool", {{"x", n.in(0)}}, attributes);
}

// The exponent is a float in opset 1.
double exponent(const NodeView& n) {
  return n.opset() < 2 ? n.real("p", 2) : static_cast<double>(n.integer("p", 2));
}

std::vector<Value> lp_pool(const NodeView& n) {
  Attributes attributes = pool_attributes(n, n.in(0));
  attributes.emplace("p", exponent(n));
  return n.make("lp_pool", {{"x", n.in(0)}}, attributes);
}

Axes spatial_axes(const NodeView& n, Value x) {
  Axes axes(static_cast<size_t>(spatial_rank(n, x)));
  std::iota(axes.begin(), axes.end(), 2);
  return axes;
}

std::vector<Value> global_average(const NodeView& n) {
  return {reduce_mean(n.in(0), spatial_axes(n, n.in(0)), Keep::Dims)};
}

std::vector<Value> global_max(const NodeView& n) {
  return {reduce_max(n.in(0), spatial_axes(n, n.in(0)), Keep::Dims)};
}

std::vector<Value> global_norm(const NodeView& n) {
  const double p = exponent(n);
  const Value powers = pow(tenon::abs(n.in(0)), p);
  return {pow(reduce_sum(powers, spatial_axes(n, n.in(0)), Keep::Dims), 1 / p)};
}

// What one region is pooled to, and how its corners are read.
Attributes region_attributes(const NodeView& n, const std::vector<int64_t>& size) {
  return {{"size", size}, {"scale", n.real("spatial_scale", 1)}};
}

std::vector<Value> roi_align(const NodeView& n) {
  Attributes attributes = region_attributes(n, {n.integer("output_height", 1), n.integer("output_width", 1)});
  const std::string mode = n.text("mode", "avg");
  if (mode != "avg" && mode != "max")
    throw user_error("RoiAlign: mode is {}, but must be avg or max", mode);
  attributes.emplace("mode", mode == "avg" ? "mean" : "max");
  attributes.emplace("samples", n.integer("sampling_ratio", 0));
  // Before opset 16, coordinates were always those of centres.
  const std::string coordinates =
      n.text("coordinate_transformation_mode", n.opset() < 16 ? "output_half_pixel" : "half_pixel");
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel")
    throw user_error(
        "RoiAlign: coordinate_transformation_mode is {}, but must be half_pixel or output_half_pixel",
        coordinates);
  attributes.emplace("half_pixel", coordinates == "half_pixel");
  return n.make("roi_align", {{"x", n.in(0)}, {"regions", n.in(1)}, {"images", n.in(2)}}, attributes);
}

std::vector<Value> max_roi_pool(const NodeView& n) {
  return n.make("max_roi_pool", {{"x", n.in(0)}, {"regions", n.in(1)}},
                region_attributes(n, n.integers("pooled_shape")));
}

}  // namespace

const Conversions& pool_conversions() {
  static const Conversions conversions = {
      {"MaxPool", max_pool},         {"AveragePool", average_pool},
      {"LpPool", lp_pool},           {"GlobalAveragePool", global_average},
      {"GlobalMaxPool", global_max}, {"GlobalLpPool", global_norm},
      {"RoiAlign", roi_align},       {"MaxRoiPool", max_roi_pool},
  };
  return conversions;
}

}  // namespace tenon::onnx
