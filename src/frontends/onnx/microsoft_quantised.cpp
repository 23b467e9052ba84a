// microsoft_quantised.cpp — ops of ONNX Runtime's own (com.microsoft) on quantised tensors: what it calls
// QLinear…, which computes in f32 and rounds once; products of bytes that give floats; and weights of a few
// bits.
#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/linear.h"
#include "ops/quantise.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/unary.h"
#include "tensor/packing.h"

namespace tenon::onnx {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// --- QLinear…

// The numbers that inputs `index` to `index` + 2 stand for: integers, their scale and their zero point.
Value real_input(const NodeView& n, size_t index) {
  return dequantize(n.in(index), n.in(index + 1), n.maybe(index + 2), DType::F32);
}

// y in the integers of the first input, by the scale and zero point at `index`.
std::vector<Value> rounded(const NodeView& n, Value y, size_t index, DType to) {
  return {quantize(y, n.in(index), n.maybe(index + 1), to)};
}

using Binary = Value (*)(Value, Value);
Convert binary(Binary compute) {
  return [=](const NodeView& n) {
    return rounded(n, compute(real_input(n, 0), real_input(n, 3)), 6, n.in(0).dtype());
  };
}

using Unary = Value (*)(const NodeView&, Value);
Convert one_operand(Unary compute) {
  return [=](const NodeView& n) { return rounded(n, compute(n, real_input(n, 0)), 3, n.in(0).dtype()); };
}

Value leak(const NodeView& n, Value x) { return leaky_relu(x, n.real("alpha", 0.01f)); }

Value squash(const NodeView&, Value x) { return sigmoid(x); }

// Without an axis it is the last, also where that of the standard op is another.
Value softmax_of_opset(const NodeView& n, Value x) {
  if (!n.has("axis"))
    return softmax(x, -1);
  return convert_as("Softmax", n, {x}, n.integer("opset")).front();
}

// What pools along the spatial axes, also where the channels come last.
Value pool(const NodeView& n, Value x, std::string_view op_type) {
  if (!n.flag("channels_last", false))
    return convert_as(op_type, n, {x}).front();
  const int64_t rank = n.rank_of(x);
  return channels_last(convert_as(op_type, n, {channels_first(x, rank)}).front(), rank);
}
Value average_pool(const NodeView& n, Value x) { return pool(n, x, "AveragePool"); }
Value global_average_pool(const NodeView& n, Value x) { return pool(n, x, "GlobalAveragePool"); }

// Inputs 0 and 1 are the scale and zero point of the result; three follow for each part.
std::vector<Value> convert_qlinear_concat(const NodeView& n) {
  if (n.input_count() < 5 || n.input_count() % 3 != 2)
    throw user_error("QLinearConcat: {} inputs are not two and three for each part", n.input_count());
  std::vector<Value> parts;
  for (size_t i = 2; i < n.input_count(); i += 3)
    parts.push_back(real_input(n, i));
  return rounded(n, concat(parts, n.integer("axis")), 0, n.in(2).dtype());
}

std::vector<Value> convert_qlinear_where(const NodeView& n) {
  return rounded(n, where(n.in(0), real_input(n, 1), real_input(n, 4)), 7, n.in(1).dtype());
}

std::vector<Value> convert_qlinear_conv(const NodeView& n) {
  if (!n.flag("channels_last", false))
    return convert_as("QLinearConv", n, n.inputs());
  const int64_t rank = n.rank_of(n.in(0));
  std::vector<Value> inputs = n.inputs();
  inputs[0] = channels_first(n.in(0), rank);
  return {channels_last(convert_as("QLinearConv", n, inputs).front(), rank)};
}

// --- products of bytes

// The exact product of integers less their zero points, by both scales.
Value scaled_product(const NodeView& n, Value a, Value a_zero_point, Value b, Value b_zero_point, Value scale,
                     Value bias) {
  const Value sums = convert_as("MatMulInteger", n, {a, b, a_zero_point, b_zero_point}).front();
  const Value y = cast(sums, scale.dtype()) * scale;
  return bias ? y + bias : y;
}

std::vector<Value> convert_matmul_integer_to_float(const NodeView& n) {
  return {scaled_product(n, n.in(0), n.maybe(4), n.in(1), n.maybe(5), n.in(2) * n.in(3), n.maybe(6))};
}

std::vector<Value> convert_dynamic_quantize_matmul(const NodeView& n) {
  // In the graph of its operand, which may be a step of a layer.
  const std::vector<Value> a = n.in(0).graph().create("dynamic_quantize", {{"x", n.in(0)}}, {})->results();
  return {scaled_product(n, a[0], a[2], n.in(1), n.maybe(3), a[1] * n.in(2), n.maybe(4))};
}

std::vector<Value> convert_qgemm(const NodeView& n) {
  const auto transposed = [&](Value x, std::string_view flag) {
    return n.flag(flag, false) ? transpose(x, {1, 0}) : x;
  };
  Value sums = convert_as("MatMulInteger", n,
                          {transposed(n.in(0), "transA"), transposed(n.in(3), "transB"), n.in(2), n.in(5)})
                   .front();
  if (const Value c = n.maybe(6))
    sums = sums + c;
  Value y = cast(sums, DType::F32) * (n.in(1) * n.in(4));
  if (const double factor = n.real("alpha", 1); factor != 1)
    y = y * factor;
  const Value y_zero_point = n.maybe(8);  // without one, y stays as it is
  return {y_zero_point ? quantize(y, n.in(7), y_zero_point, y_zero_point.dtype()) : y};
}

// --- weights of a few bits

DType unsigned_of(const NodeView& n, int64_t bits) {
  switch (bits) {
    case 2:
      return DType::U2;
    case 4:
      return DType::U4;
    case 8:
      return DType::U8;
    default:
      throw unsupported("{}: {} bits", n.op_type(), bits);
  }
}

// The elements of few bits that the bytes of an input hold, low bits first.
Value unpacked(const NodeView& n, size_t index, DType dtype, const Extents& extents) {
  const Literal* bytes = literal_of(n.in(index));
  if (bytes == nullptr)
    throw unsupported("{}: input {} must be a constant", n.op_type(), index);
  const uint64_t wanted = packed_size(dtype, element_count(extents));
  if (bytes->dtype() != DType::U8 || static_cast<uint64_t>(bytes->count()) != wanted)
    throw user_error("{}: input {} is {}, but {} take {} bytes", n.op_type(), index, n.in(index).type(),
                     describe(dtype, extents), wanted);
  const auto* slice = std::get_if<Literal::FileSlice>(&bytes->form());
  return parameter(n.graph(), std::string(n.proto().input[index]),
                   slice != nullptr
                       ? Literal::file_slice(dtype, extents, slice->file, slice->offset, slice->size)
                       : Literal(unpack(dtype, extents, bytes->tensor().bytes())));
}

// Zero points of blocks: given in bytes of which each row has its own, as floats, or the middle.
Value zero_points_of_blocks(const NodeView& n, size_t index, DType dtype, int64_t rows, int64_t blocks) {
  const int64_t bits = info(dtype).bits, per_byte = 8 / bits;
  const Value given = n.maybe(index);
  if (!given) {
    const Tensor middle = unpack(dtype, {}, std::vector{static_cast<std::byte>(1 << (bits - 1))});
    return constant(n.graph(), Literal::splat(middle, {rows, blocks}));
  }
  if (given.dtype() != DType::U8)
    return reshape(given, {rows, blocks});
  const int64_t in_bytes = (blocks + per_byte - 1) / per_byte * per_byte;
  const Value all = unpacked(n, index, dtype, {rows, in_bytes});
  return in_bytes == blocks ? all : slice(all, 1, 0, blocks);
}

// Rows of weights in blocks, as floats.
Value real_blocks(Value weights, Value scales, Value zero_points, int64_t block_size) {
  if (is_integer(zero_points.dtype()))
    return dequantize(weights, scales, zero_points, scales.dtype(), {.axis = 1, .block_size = block_size});
  const Value blocks = reshape_copying(cast(weights, scales.dtype()), {0, -1, block_size});
  return reshape_copying((blocks - unsqueeze(zero_points, {2})) * unsqueeze(scales, {2}), {0, -1});
}

int64_t positive(const NodeView& n, std::string_view name) {
  const int64_t value = n.integer(name);
  if (value <= 0 || value > (int64_t{1} << 31))
    throw user_error("{}: {} is {}", n.op_type(), name, value);
  return value;
}

std::vector<Value> convert_matmul_n_bits(const NodeView& n) {
  if (n.maybe(4))
    throw unsupported("MatMulNBits: its input g_idx");
  if (n.integer("weight_prepacked", 0) != 0)
    throw unsupported("MatMulNBits: weights in the layout of another machine");
  const int64_t width = positive(n, "K"), rows = positive(n, "N"), block_size = positive(n, "block_size");
  const int64_t blocks = (width + block_size - 1) / block_size;
  const DType dtype = unsigned_of(n, n.integer("bits", 4));
  const Value weights = unpacked(n, 1, dtype, {rows, blocks * block_size});
  const Value scales = reshape(n.in(2), {rows, blocks});
  const Value real =
      real_blocks(weights, scales, zero_points_of_blocks(n, 3, dtype, rows, blocks), block_size);
  const Value y =
      matmul(n.in(0), width == blocks * block_size ? real : slice(real, 1, 0, width), {.b = true});
  const Value bias = n.maybe(5);
  return {bias ? y + bias : y};
}

// Rows are picked while they are small, with their scales and zero points.
std::vector<Value> convert_gather_block_quantized(const NodeView& n) {
  Value data = n.in(0);
  const Value indices = n.in(1), scales = n.in(2);
  const int64_t rank = n.rank_of(data), block_size = n.integer("block_size", 128);
  const auto axis_of = [&](std::string_view name, int64_t otherwise) {
    const int64_t axis = n.integer(name, otherwise);
    return axis < 0 ? axis + rank : axis;
  };
  if (rank != 2 || axis_of("gather_axis", 0) != 0 || axis_of("quantize_axis", 1) != 1)
    throw unsupported("GatherBlockQuantized: but for rows of a matrix in blocks along them");
  Value zero_points = n.maybe(3);
  if (data.dtype() == DType::U8) {
    const DType dtype = unsigned_of(n, n.integer("bits", 4));
    const auto rows = data.dim(0).constant(), bytes = data.dim(1).constant();
    const auto blocks =
        scales.shape().ranked() && scales.rank() == 2 ? scales.dim(1).constant() : std::nullopt;
    if (!rows || !bytes || !blocks)
      throw unsupported("GatherBlockQuantized: {} by scales {}", data.type(), scales.type());
    zero_points = zero_points_of_blocks(n, 3, dtype, *rows, *blocks);
    data = unpacked(n, 0, dtype, {*rows, *bytes * (8 / info(dtype).bits)});
  }
  const auto picked = [&](Value x) { return x ? gather(x, indices, 0) : x; };
  return {dequantize(picked(data), picked(scales), picked(zero_points), scales.dtype(),
                     {.axis = -1, .block_size = block_size})};
}

}  // namespace

const Conversions& microsoft_quantised_conversions() {
  static const Conversions conversions = {
      {"DequantizeLinear", as_standard("DequantizeLinear"), kDomain},
      {"DynamicQuantizeMatMul", convert_dynamic_quantize_matmul, kDomain},
      {"GatherBlockQuantized", convert_gather_block_quantized, kDomain},
      {"MatMulIntegerToFloat", convert_matmul_integer_to_float, kDomain},
      {"MatMulNBits", convert_matmul_n_bits, kDomain},
      {"QGemm", convert_qgemm, kDomain},
      {"QLinearAdd", binary([](Value a, Value b) { return a + b; }), kDomain},
      {"QLinearAveragePool", one_operand(average_pool), kDomain},
      {"QLinearConcat", convert_qlinear_concat, kDomain},
      {"QLinearConv", convert_qlinear_conv, kDomain},
      {"QLinearGlobalAveragePool", one_operand(global_average_pool), kDomain},
      {"QLinearLeakyRelu", one_operand(leak), kDomain},
      {"QLinearMul", binary([](Value a, Value b) { return a * b; }), kDomain},
      {"QLinearSigmoid", one_operand(squash), kDomain},
      {"QLinearSoftmax", one_operand(softmax_of_opset), kDomain},
      {"QLinearWhere", convert_qlinear_where, kDomain},
      {"QuantizeLinear", as_standard("QuantizeLinear"), kDomain},
  };
  return conversions;
}

}  // namespace tenon::onnx
