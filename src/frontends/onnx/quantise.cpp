// quantise.cpp — ONNX quantization, and products of quantized matrices.
#include "ops/quantise.h"

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

// A vector has one axis, whatever the attribute says (its default is the second).
Granularity granularity(const NodeView& n, Value x) {
  const bool vector = x.shape().ranked() && x.rank() == 1;
  return {.axis = vector ? 0 : n.integer("axis", 1), .block_size = n.integer("block_size", 0)};
}

// An attribute that holds a dtype, where 0 is as good as absent.
std::optional<DType> optional_dtype(const NodeView& n, std::string_view name) {
  return n.integer(name, 0) == 0 ? std::nullopt : std::optional(n.dtype(name));
}

std::vector<Value> quantized(const NodeView& n) {
  Value x = n.in(0), scale = n.in(1);
  const Value zero_point = n.maybe(2);
  DType to = zero_point ? zero_point.dtype() : DType::U8;
  if (const auto output = optional_dtype(n, "output_dtype")) {
    if (zero_point && *output != to)
      throw user_error("QuantizeLinear: output_dtype is {}, but y_zero_point is {}", *output, to);
    to = *output;
  }
  if (const auto precision = optional_dtype(n, "precision"); precision && *precision != scale.dtype()) {
    x = cast(x, *precision);
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
std::vector<Value> dequantized(const NodeView& n) {
  const Value x = n.in(0), scale = n.in(1);
  const DType by_scale = scale.dtype() == DType::F8E8M0 ? DType::F32 : scale.dtype();
  return {dequantize(x, scale, n.maybe(2), optional_dtype(n, "output_dtype").value_or(by_scale),
                     granularity(n, x))};
}

// To u8, with the scale and zero point that make the range of x, extended to 0, just fit.
std::vector<Value> quantized_by_range(const NodeView& n) {
  const Value x = n.in(0);
  if (!x.shape().ranked())
    throw unsupported("DynamicQuantizeLinear: an input of unknown rank");
  Axes every;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    every.push_back(axis);
  const Value zero = scalar(n.graph(), x.dtype(), 0), top = scalar(n.graph(), x.dtype(), 255);
  const Value least = minimum(reduce_min(x, every), zero), greatest = maximum(reduce_max(x, every), zero);
  const Value scale = (greatest - least) / 255.0;
  const Value zero_point = cast(tenon::round(clip(zero - least / scale, zero, top)), DType::U8);
  return {quantize(x, scale, zero_point, DType::U8), scale, zero_point};
}

enum class Side : bool { Left, Right };

// A vector of scales or zero points is one per row on the left, and one per column on the right.
Value along(Side side, Value per) {
  return side == Side::Left && per.shape().ranked() && per.rank() == 1 ? unsqueeze(per, {1}) : per;
}

// The integers that x stands for, in `to`.
Value shifted(Side side, Value x, Value zero_point, DType to) {
  x = cast(x, to);
  return zero_point ? x - cast(along(side, zero_point), to) : x;
}

std::vector<Value> integer_product(const NodeView& n) {
  return {matmul(shifted(Side::Left, n.in(0), n.maybe(2), DType::I32),
                 shifted(Side::Right, n.in(1), n.maybe(3), DType::I32))};
}

// The product is exact, and is scaled and rounded once. A scale per row of a leaves y quantized as a whole.
std::vector<Value> quantized_product(const NodeView& n) {
  const Value a_scale = n.in(1), b_scale = n.in(4), y_scale = n.in(6), y_zero_point = n.in(7);
  const DType inner = is_integer(n.in(0).dtype()) ? DType::I32 : DType::F32;
  const Value product =
      matmul(shifted(Side::Left, n.in(0), n.in(2), inner), shifted(Side::Right, n.in(3), n.in(5), inner));
  const Value scale = along(Side::Left, a_scale) * b_scale;
  return {quantize(cast(product, DType::F32) * cast(scale, DType::F32), cast(y_scale, DType::F32),
                   y_zero_point, y_zero_point.dtype())};
}

}  // namespace

const Conversions& quantise_conversions() {
  static const Conversions conversions = {
      {"DequantizeLinear", dequantized},  {"DynamicQuantizeLinear", quantized_by_range},
      {"MatMulInteger", integer_product}, {"QLinearMatMul", quantized_product},
      {"QuantizeLinear", quantized},
  };
  return conversions;
}

}  // namespace tenon::onnx
