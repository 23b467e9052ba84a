// image.cpp — ONNX ops that resize and sample images.
#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/vectors.h"
#include "ops/data.h"
#include "ops/shapes.h"

namespace tenon::onnx {
namespace {

std::vector<int64_t> every_axis(const NodeView& n, Value x) { return axes_between(0, n.rank_of(x)); }

// An input that is there, and does not say that it is not by having no elements.
Value unless_empty(Value value) {
  return value && value.shape().ranked() && value.shape().element_count() == Dim(0) ? Value() : value;
}

std::vector<Value> convert_resize(const NodeView& n) {
  const Value x = n.in(0);
  if (n.opset() < 11)  // as Upsample does
    return n.make("resize", {{"x", x}, {"scales", n.in(1)}},
                  {{"axes", every_axis(n, x)},
                   {"mode", n.translate<std::string>("mode", "nearest",
                                                     {{"nearest", "nearest"}, {"linear", "linear"}})},
                   {"positions", "asymmetric"},
                   {"round", "down"}});
  return n.make(
      "resize",
      {{"x", x},
       {"scales", unless_empty(n.maybe(2))},
       {"sizes", unless_empty(n.maybe(3))},
       {"region", unless_empty(n.maybe(1))}},
      {{"axes", n.has("axes") ? n.integers("axes") : every_axis(n, x)},
       {"mode", n.translate<std::string>("mode", "nearest",
                                         {{"nearest", "nearest"}, {"linear", "linear"}, {"cubic", "cubic"}})},
       {"positions", n.translate<std::string>("coordinate_transformation_mode", "half_pixel",
                                              {{"half_pixel", "half_pixel"},
                                               {"pytorch_half_pixel", "half_pixel_or_first"},
                                               {"half_pixel_symmetric", "half_pixel_symmetric"},
                                               {"tf_half_pixel_for_nn", "shifted"},
                                               {"asymmetric", "asymmetric"},
                                               {"align_corners", "align_corners"},
                                               {"tf_crop_and_resize", "crop"}})},
       {"round", n.translate<std::string>("nearest_mode", "round_prefer_floor",
                                          {{"round_prefer_floor", "half_down"},
                                           {"round_prefer_ceil", "half_up"},
                                           {"floor", "down"},
                                           {"ceil", "up"}})},
       {"cubic_a", n.real("cubic_coeff_a", -0.75)},
       {"antialias", n.flag("antialias", false)},
       {"exclude_outside", n.flag("exclude_outside", false)},
       {"outside_value", n.real("extrapolation_value", 0)},
       {"aspect", n.text("keep_aspect_ratio_policy", "stretch")}});
}

// The scales are attributes before opset 9: two of them in opset 1, then one for each dimension.
std::vector<Value> convert_upsample(const NodeView& n) {
  const Value x = n.in(0);
  Value scales = n.opset() >= 9 ? n.in(1) : Value();
  if (!scales) {
    const std::vector<double> given =
        n.opset() >= 7 ? n.reals("scales")
                       : std::vector<double>{1, 1, n.real("height_scale"), n.real("width_scale")};
    scales = constant(n.graph(), float_vector(given));
  }
  return n.make("resize", {{"x", x}, {"scales", scales}},
                {{"axes", every_axis(n, x)},
                 {"mode", n.translate<std::string>(
                              "mode", "nearest",
                              {{"nearest", "nearest"}, {"linear", "linear"}, {"bilinear", "linear"}})},
                 {"positions", "asymmetric"},
                 {"round", "down"}});
}

std::vector<Value> convert_grid_sample(const NodeView& n) {
  // Opset 20 renamed the modes when it went beyond two dimensions.
  const std::string mode = n.translate<std::string>("mode", "linear",
                                                    {{"nearest", "nearest"},
                                                     {"linear", "linear"},
                                                     {"bilinear", "linear"},
                                                     {"cubic", "cubic"},
                                                     {"bicubic", "cubic"}});
  return n.make("grid_sample", {{"x", n.in(0)}, {"grid", n.in(1)}},
                {{"mode", mode},
                 {"outside", n.text("padding_mode", "zeros")},
                 {"align_corners", n.flag("align_corners", false)}});
}

std::vector<Value> convert_affine_grid(const NodeView& n) {
  return n.make("affine_grid", {{"theta", n.in(0)}, {"size", n.in(1)}},
                {{"align_corners", n.flag("align_corners", false)}});
}

std::vector<Value> convert_col2im(const NodeView& n) {
  const Value image_shape = n.in(1), block_shape = n.in(2);
  auto rank = known_length("Col2Im", "image_shape", image_shape);
  if (!rank)
    rank = known_length("Col2Im", "block_shape", block_shape);
  if (!rank)
    throw unsupported("Col2Im: the length of image_shape must be known when the model is read");
  const auto count = static_cast<size_t>(*rank);
  const std::vector<int64_t> ones(count, 1);
  return n.make("col2im", {{"x", n.in(0)}, {"image_shape", image_shape}, {"block_shape", block_shape}},
                {{"strides", n.integers("strides", ones)},
                 {"dilations", n.integers("dilations", ones)},
                 {"pads", n.integers("pads", std::vector<int64_t>(2 * count, 0))}});
}

}  // namespace

const Conversions& image_conversions() {
  static const Conversions conversions = {
      {"Resize", convert_resize},          {"Upsample", convert_upsample},
      {"GridSample", convert_grid_sample}, {"AffineGrid", convert_affine_grid},
      {"Col2Im", convert_col2im},
  };
  return conversions;
}

}  // namespace tenon::onnx
