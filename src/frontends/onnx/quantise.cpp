// quantise.cpp — ONNX quantization, and products of quantized matrices.
#include "ops/quantise.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/window_attributes.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/reshape.h"
#include "ops/select.h"

namespace tenon::onnx {
namespace {

bool has_rank(Value x, int64_t rank) { return x.shape().ranked() && x.rank() == rank; }

// A vector has one axis, whatever the attribute says (its default is the second).
Granularity granularity(const NodeView& n, Value x) {
  return {.axis = has_rank(x, 1) ? 0 : n.integer("axis", 1), .block_size = n.integer("block_size", 0)};
}

// An attribute that holds a dtype, where 0 is as good as absent.
std::optional<DType> optional_dtype(const NodeView& n, std::string_view name) {
  return n.integer(name, 0) == 0 ? std::nullopt : std::optional(n.dtype(name));
}

std::vector<Value> convert_quantize_linear(const NodeView& n) {
  Value x = n.in(0), scale = n.in(1);
  const Value zero_point = n.maybe(2);
  DType to = zero_point ? zero_point.dtype() : DType::U8;
  if (const auto output = optional_dtype(n, "output_dtype")) {
    if (zero_point && *output != to)
      throw user_error("QuantizeLinear: output_dtype is {}, but y_zero_point is {}", *output, to);
    to = *output;
  }
  if (const auto precision = optional_dtype(n, "precision"); precision && *precision != scale.dtype()) {
    x = in_dtype(x, *precision);
    scale = cast(scale, *precision);
  }
  const Granularity per = granularity(n, x);
  return n.make("quantize", {{"x", x}, {"scale", scale}, {"zero_point", zero_point}},
                {{"to", to},
                 {"axis", per.axis},
                 {"block_size", per.block_size},
                 {"saturate", n.flag("saturate", true)}});
}

// A scale in powers of two says nothing about the dtype of the result.
std::vector<Value> convert_dequantize_linear(const NodeView& n) {
  const Value x = n.in(0), scale = n.in(1);
  const DType by_scale = scale.dtype() == DType::F8E8M0 ? DType::F32 : scale.dtype();
  return {dequantize(x, scale, n.maybe(2), optional_dtype(n, "output_dtype").value_or(by_scale),
                     granularity(n, x))};
}

std::vector<Value> convert_dynamic_quantize_linear(const NodeView& n) {
  return n.make("dynamic_quantize", {{"x", n.in(0)}});
}

enum class Side : bool { Left, Right };

// A vector of scales or zero points is one per row of the matrix on the left, per column of that on the
// right.
Value along(Side side, Value x, Value per) {
  return side == Side::Left && !has_rank(x, 1) && has_rank(per, 1) ? unsqueeze(per, {1}) : per;
}

// The integers that x stands for, in `to`.
Value shifted(Side side, Value x, Value zero_point, DType to) {
  const Value wide = cast(x, to);
  return zero_point ? wide - cast(along(side, x, zero_point), to) : wide;
}

std::vector<Value> convert_matmul_integer(const NodeView& n) {
  return {matmul(shifted(Side::Left, n.in(0), n.maybe(2), DType::I32),
                 shifted(Side::Right, n.in(1), n.maybe(3), DType::I32))};
}

// The product is exact, and is scaled and rounded once. A scale per row of a leaves y quantized as a whole.
std::vector<Value> convert_qlinear_matmul(const NodeView& n) {
  const Value a_scale = n.in(1), b_scale = n.in(4), y_scale = n.in(6), y_zero_point = n.in(7);
  const DType inner = is_integer(n.in(0).dtype()) ? DType::I32 : DType::F32;
  const Value product =
      matmul(shifted(Side::Left, n.in(0), n.in(2), inner), shifted(Side::Right, n.in(3), n.in(5), inner));
  const Value scale =
      in_dtype(along(Side::Left, n.in(0), a_scale), DType::F32) * in_dtype(b_scale, DType::F32);
  return {quantize(in_dtype(product, DType::F32) * scale, in_dtype(y_scale, DType::F32), y_zero_point,
                   y_zero_point.dtype())};
}

// A number per output channel, so that it lines up with w [channels, …] or, without the batch, with y.
Value per_channel(Value per, int64_t rank) {
  return has_rank(per, 1) ? unsqueeze(per, axes_between(1, rank)) : per;
}

// The same for a convolution: what is padded is the zero point, so 0 once that is subtracted.
std::vector<Value> convert_qlinear_conv(const NodeView& n) {
  const Value x = n.in(0), w = n.in(3), y_zero_point = n.in(7);
  const int64_t spatial = spatial_rank(n, w);
  const std::vector<Dim>& dims = w.shape().dims();
  Attributes attributes = window_attributes(n, x, {dims.begin() + 2, dims.end()});
  attributes.emplace("groups", n.integer("group", 1));
  Value sums = n.make("conv",
                      {{"x", cast(x, DType::I32) - cast(n.in(2), DType::I32)},
                       {"w", cast(w, DType::I32) - cast(per_channel(n.in(5), spatial + 2), DType::I32)}},
                      attributes)
                   .front();
  if (const Value bias = n.maybe(8))
    sums = sums + per_channel(bias, spatial + 1);
  const Value scale = n.in(1) * per_channel(n.in(4), spatial + 1);
  return {quantize(cast(sums, DType::F32) * scale, n.in(6), y_zero_point, y_zero_point.dtype())};
}

}  // namespace

const Conversions& quantise_conversions() {
  static const Conversions conversions = {
      {"DequantizeLinear", convert_dequantize_linear},
      {"DynamicQuantizeLinear", convert_dynamic_quantize_linear},
      {"MatMulInteger", convert_matmul_integer},
      {"QLinearConv", convert_qlinear_conv},
      {"QLinearMatMul", convert_qlinear_matmul},
      {"QuantizeLinear", convert_quantize_linear},
  };
  return conversions;
}

}  // namespace tenon::onnx
