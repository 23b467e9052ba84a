#include "ops/quantise.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lower.h"
#include "ops/pad.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon {
namespace {

bool is_blocked(int64_t block_size, int64_t scale_rank, int64_t x_rank) {
  return block_size > 0 && scale_rank == x_rank && x_rank > 0;
}

void check_block_size(std::string_view op, int64_t block_size) {
  if (block_size < 0)
    throw user_error("{}: a block_size of {} is no size", op, block_size);
}

void check_scale(const Node& n, Value x, Value scale) {
  const int64_t block_size = n.attr("block_size");
  if (is_blocked(block_size, scale.rank(), x.rank())) {
    const int64_t axis = checked_axis(n.op().name, n.attr("axis"), x.rank());
    for (int64_t i = 0; i < x.rank(); ++i) {
      const Dim wanted = i == axis ? ceil_div(x.dim(i), block_size) : x.dim(i);
      if (provably_different(scale.dim(i), wanted))
        throw operand_error(n, fmt::format("blocks of {} along axis {} need {} scales in dimension {}",
                                           block_size, axis, wanted, i));
    }
    return;
  }
  if (scale.rank() == 0 || provably_equal(scale.shape().element_count(), 1))
    return;
  if (scale.rank() > 1)
    throw operand_error(n, "scale must be one number, a vector, or have the rank of x and a block_size");
  const int64_t axis = checked_axis(n.op().name, n.attr("axis"), x.rank());
  if (!may_fill(scale.dim(0), x.dim(axis)) && scale.dim(0).is_constant())
    throw operand_error(n, fmt::format("there are {} scales for the {} steps along axis {}", scale.dim(0),
                                       x.dim(axis), axis));
}

Types infer(const Node& n) {
  const Value x = n.in("x"), scale = n.in("scale"), zero_point = n.in("zero_point");
  const DType to = n.attr("to");
  check_block_size(n.op().name, n.attr("block_size"));
  if (x.shape().ranked() && scale.shape().ranked())
    check_scale(n, x, scale);
  if (zero_point && zero_point.shape().ranked() && scale.shape().ranked()) {
    const Dim one = 1, zero_points = zero_point.shape().element_count(),
              scales = scale.shape().element_count();
    if (!(zero_points == one && scales == one) &&
        (zero_point.rank() != scale.rank() ||
         !std::equal(scale.shape().dims().begin(), scale.shape().dims().end(),
                     zero_point.shape().dims().begin(), std::not_fn(provably_different))))
      throw operand_error(n, "zero_point must have the shape of scale");
  }
  return {Type::tensor(to, x.shape())};
}

Types infer_quantize(const Node& n) {
  const DType to = n.attr("to");
  if (!NumbersAndBool.contains(to) || to == DType::Bool)
    throw user_error("quantize: numbers cannot be quantized to {}", to);
  if (n.has("zero_point") && n.in("zero_point").dtype() != to)
    throw operand_error(n, fmt::format("zero_point must have the dtype of the result, {}", to));
  return infer(n);
}

Types infer_dequantize(const Node& n) {
  const DType to = n.attr("to");
  if (!is_float(to))
    throw user_error("dequantize: its result must be floats, not {}", to);
  return infer(n);
}

// Where the scale of an element stands: x is seen as [outer, length, inner] around the axis, and the scale of
// the element (o, l, i) is at o · outer_step + l / block · length_step + i · inner_step.
struct ScaleWalk {
  int64_t outer, length, inner;
  int64_t outer_step = 0, length_step = 0, inner_step = 0, block = 1;

  template <class F>
  void operator()(F&& f) const {
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t l = 0; l < length; ++l)
        for (int64_t i = 0; i < inner; ++i)
          f(static_cast<size_t>(o * outer_step + l / block * length_step + i * inner_step));
  }
};

ScaleWalk walk_scales(const Call& c) {
  const std::string_view op = c.node().op().name;
  const Tensor &x = c.in("x"), &scale = c.in("scale");
  if (c.has("zero_point") && c.in("zero_point").extents() != scale.extents() &&
      !(c.in("zero_point").count() == 1 && scale.count() == 1))
    throw user_error("{}: zero_point has the shape [{}], but scale [{}]", op,
                     fmt::join(c.in("zero_point").extents(), ","), fmt::join(scale.extents(), ","));
  const int64_t block_size = c.attr("block_size");
  check_block_size(op, block_size);
  const bool blocked = is_blocked(block_size, scale.rank(), x.rank());
  if (!blocked && scale.count() == 1)
    return {.outer = 1, .length = 1, .inner = x.count()};

  const int64_t axis = checked_axis(op, c.attr("axis"), x.rank());
  const auto size_of = [](auto begin, auto end) {
    return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
  };
  if (x.count() == 0)
    return {.outer = 0, .length = 0, .inner = 0};
  const auto at = x.extents().begin() + axis;
  ScaleWalk walk{
      .outer = size_of(x.extents().begin(), at), .length = *at, .inner = size_of(at + 1, x.extents().end())};
  Extents wanted = {walk.length};
  if (blocked) {
    wanted = x.extents();
    int64_t& blocks = wanted[static_cast<size_t>(axis)];
    blocks = (blocks - 1) / block_size + 1;
    walk.outer_step = blocks * walk.inner;
    walk.length_step = walk.inner;
    walk.inner_step = 1;
    walk.block = block_size;
  } else {
    walk.length_step = 1;
  }
  if (scale.extents() != wanted)
    throw user_error("{}: scale has the shape [{}], but [{}] was wanted", op, fmt::join(scale.extents(), ","),
                     fmt::join(wanted, ","));
  return walk;
}

std::vector<double> zero_points(const Call& c) {
  return c.has("zero_point") ? widen<double>(c.in("zero_point"))
                             : std::vector<double>(static_cast<size_t>(c.in("scale").count()), 0);
}

// The quotient is rounded to the dtype of the scale, as a division in that dtype would be. A power of two
// divides without rounding, and integers divide as numbers do.
Tensor rounded_quotients(const Tensor& x, const Tensor& scale, const ScaleWalk& walk) {
  const std::vector<double> scales = widen<double>(scale);
  std::vector<double> values = widen<double>(x);
  auto value = values.begin();
  walk([&](size_t at) {
    *value = *value / scales[at];
    ++value;
  });
  const DType precision =
      is_float(scale.dtype()) && scale.dtype() != DType::F8E8M0 ? scale.dtype() : DType::F64;
  return narrow<double>(precision, x.extents(), values);
}

// round(x / scale) + zero_point for integers; floats round when they are converted.
Data eval_quantize(const Call& c) {
  const Tensor& x = c.in("x");
  const DType to = c.attr("to");
  const ScaleWalk walk = walk_scales(c);
  const std::vector<double> zeros = zero_points(c);
  std::vector<double> values = widen<double>(rounded_quotients(x, c.in("scale"), walk));
  auto value = values.begin();
  walk([&](size_t at) {
    if (is_integer(to))
      *value = std::nearbyint(*value);
    if (zeros[at] != 0)  // -0 stays -0
      *value += zeros[at];
    ++value;
  });
  const bool saturate = is_integer(to) || c.attr("saturate");
  return {narrow<double>(to, x.extents(), values, saturate ? Overflow::Saturate : Overflow::Natural)};
}

// Where the scale of an element stands; nothing where it is dynamic whether there is one for each.
std::optional<LowerContext::Formula> lowered_scales(LowerContext& c, Value each) {
  const Value x = c.node().in("x");
  const int64_t block_size = c.node().attr("block_size");
  const bool blocked = is_blocked(block_size, each.rank(), x.rank());
  if (!blocked && each.shape().element_count() == Dim(1))
    return [&c, each](const Index&) {
      return c.stored(each, Index(static_cast<size_t>(each.rank()), Scalar::index(0)));
    };
  const int64_t axis = checked_axis(c.node().op().name, c.node().attr("axis"), x.rank());
  if (!blocked) {
    if (each.rank() != 1 || each.dim(0) != x.dim(axis))
      return std::nullopt;
    return [&c, each, axis](const Index& at) { return c.stored(each, {at[static_cast<size_t>(axis)]}); };
  }
  for (int64_t i = 0; i < x.rank(); ++i)
    if (each.dim(i) != (i == axis ? ceil_div(x.dim(i), block_size) : x.dim(i)))
      return std::nullopt;
  return [&c, each, axis, block_size](Index at) {
    Scalar& along = at[static_cast<size_t>(axis)];
    along = Scalar::index(floor_div(along.index(), block_size));
    return c.stored(each, at);
  };
}

bool is_number(Value value, double number) {
  const Literal* literal = literal_of(value);
  return literal != nullptr && literal->count() == 1 && widen<double>(literal->tensor()).front() == number;
}

// The numbers of up to 16 bits are exact in f32, and a quotient of such is rounded as it is in f64. What is
// beyond them saturates, so that it need not be exact.
void lower_quantize(LowerContext& c) {
  const Value x = c.node().in("x"), scale = c.node().in("scale"), zero_point = c.node().in("zero_point");
  const DType to = c.node().attr("to");
  if (!is_integer(to) || info(to).bits > 32 ||
      (zero_point && zero_point.shape() != scale.shape() &&
       (zero_point.shape().element_count() != Dim(1) || scale.shape().element_count() != Dim(1))))
    return;
  const auto scales = lowered_scales(c, scale);
  const bool has_zeros = zero_point && !is_number(zero_point, 0);
  const auto zeros = has_zeros ? lowered_scales(c, zero_point) : std::nullopt;
  if (!scales || (has_zeros && !zeros))
    return;
  const bool small = info(x.dtype()).bits <= (is_float(x.dtype()) ? 32 : 16) && scale.dtype() == DType::F32;
  const DType divided = small ? DType::F32 : DType::F64,
              added = small && info(to).bits <= 16 ? divided : DType::F64;
  const bool by_one = is_number(scale, 1);
  c.define([&](const Index& at) {
    Scalar y = Scalar::cast(divided, c.stored(x, at));
    if (!by_one)
      y = y / Scalar::cast(divided, (*scales)(at));
    if (is_float(scale.dtype()))
      y = Scalar::cast(scale.dtype(), y);
    y = round(Scalar::cast(added, y));
    if (zeros)
      y = y + Scalar::cast(added, (*zeros)(at));
    const int bits = info(to).bits - (is_signed(to) ? 1 : 0);
    const Scalar low = loops::constant(added, is_signed(to) ? -std::ldexp(1.0, bits) : 0.0),
                 high = loops::constant(added, std::ldexp(1.0, bits) - 1);
    return maximum(minimum(y, high), low);
  });
}

// In floats that hold integers of up to 16 bits exactly.
void lower_dequantize(LowerContext& c) {
  const Value x = c.node().in("x"), zero_point = c.node().in("zero_point");
  const DType to = c.node().attr("to");
  const auto scales = lowered_scales(c, c.node().in("scale"));
  const auto zeros = zero_point ? lowered_scales(c, zero_point) : std::nullopt;
  if (!scales || (zero_point && !zeros))
    return;
  const DType inner = info(x.dtype()).bits <= 16 && to != DType::F64 ? DType::F32 : DType::F64;
  c.define([&](const Index& at) {
    Scalar y = Scalar::cast(inner, c.stored(x, at));
    if (zeros)
      y = y - Scalar::cast(inner, (*zeros)(at));
    return Scalar::cast(to, y * Scalar::cast(inner, (*scales)(at)));
  });
}

Data eval_dequantize(const Call& c) {
  const Tensor& x = c.in("x");
  const std::vector<double> scales = widen<double>(c.in("scale")), zeros = zero_points(c);
  std::vector<double> values = widen<double>(x);
  auto value = values.begin();
  walk_scales(c)([&](size_t at) {
    *value = (*value - zeros[at]) * scales[at];
    ++value;
  });
  return {narrow<double>(c.attr("to"), x.extents(), values)};
}

// A scale or zero point, in a shape that broadcasts to x.
Value spread_blocks(const Node& n, Value each) {
  const Value x = n.in("x");
  const int64_t block_size = n.attr("block_size");
  if (!is_blocked(block_size, each.rank(), x.rank())) {
    if (each.rank() == 0 || provably_equal(each.shape().element_count(), 1))
      return reshape(each, std::vector<int64_t>());
    std::vector<int64_t> along(static_cast<size_t>(x.rank()), 1);
    along[static_cast<size_t>(checked_axis(n.op().name, n.attr("axis"), x.rank()))] = -1;
    return reshape(each, along);
  }
  // Each one repeated along a new axis, which then falls together with that of the blocks.
  const int64_t axis = checked_axis(n.op().name, n.attr("axis"), x.rank());
  std::vector<int64_t> repeats(static_cast<size_t>(x.rank() + 1), 1);
  repeats[static_cast<size_t>(axis + 1)] = block_size;
  const Value repeated = tile(unsqueeze(each, {axis + 1}), int_vector(n.graph(), repeats));
  std::vector<Value> sizes;
  for (int64_t i = 0; i < x.rank(); ++i)
    sizes.push_back(i == axis ? int_vector(n.graph(), {-1}) : size_along(each, i));
  return cut_to(reshape(repeated, concat(sizes, 0)), x, axis);
}

// In floats that hold the integers exactly, so that it rounds once.
std::vector<Value> decompose_dequantize(const Node& n) {
  const Value x = n.in("x");
  const DType to = n.attr("to");
  const bool small = info(x.dtype()).bits <= 16 && to != DType::F64;
  const auto number = [&](Value value) { return cast(value, small ? DType::F32 : DType::F64); };
  Value y = number(x);
  if (n.has("zero_point"))
    y = y - number(spread_blocks(n, n.in("zero_point")));
  return {cast(y * number(spread_blocks(n, n.in("scale"))), to)};
}

// --- dynamic_quantize

Types infer_dynamic_quantize(const Node& n) {
  const Value x = n.in("x");
  return {Type::tensor(DType::U8, x.shape()), Type::tensor(x.dtype(), Shape(std::vector<Dim>())),
          Type::tensor(DType::U8, Shape(std::vector<Dim>()))};
}

// Each step is rounded to the dtype of x, as one in that dtype would be.
Data eval_dynamic_quantize(const Call& c) {
  const Tensor& x = c.in("x");
  const auto number = [](DType dtype, double value) {
    return narrow<double>(dtype, {}, std::span(&value, 1));
  };
  const auto rounded = [&](double value) { return widen<double>(number(x.dtype(), value)).front(); };
  double least = 0, greatest = 0;
  for (const double value : widen<double>(x)) {
    least = std::isnan(value) || value < least ? value : least;
    greatest = std::isnan(value) || value > greatest ? value : greatest;
  }
  const double scale = rounded(rounded(greatest - least) / 255);
  const double zero = std::nearbyint(std::clamp(rounded(0 - rounded(least / scale)), 0.0, 255.0));
  const Tensor y_scale = number(x.dtype(), scale), zero_point = number(DType::U8, zero);
  const ScaleWalk walk = {.outer = 1, .length = 1, .inner = x.count()};
  std::vector<double> values = widen<double>(rounded_quotients(x, y_scale, walk));
  const double shift = widen<double>(zero_point).front();
  for (double& value : values)
    value = std::nearbyint(value) + shift;
  return {narrow<double>(DType::U8, x.extents(), values, Overflow::Saturate), y_scale, zero_point};
}

std::vector<Value> decompose_dynamic_quantize(const Node& n) {
  const Value x = n.in("x"), all = reshape(x, {-1});
  const Value zero = scalar(n.graph(), x.dtype(), 0), top = scalar(n.graph(), x.dtype(), 255);
  const Value least = minimum(reduce_min(all, {0}), zero), greatest = maximum(reduce_max(all, {0}), zero);
  const Value scale = (greatest - least) / 255.0;
  const Value zero_point = cast(round(clip(zero - least / scale, zero, top)), DType::U8);
  return {quantize(x, scale, zero_point, DType::U8), scale, zero_point};
}

std::vector<AttributeDecl> granularity(std::string_view to) {
  return {
      {"to", AttributeKind::DType, to},
      {"axis", AttributeKind::Int, "the axis of a scale that is a vector or per block", 1},
      {"block_size", AttributeKind::Int, "how many steps along the axis share a scale; 0 for no blocks", 0}};
}

}  // namespace

const Family& quantise_ops() {
  static const Family ops = [] {
    OpDef quantize = {.name = "quantize",
                      .doc = "x / scale, rounded to nearest even, + zero_point, in a small dtype",
                      .operands = {{"x", "T"}, {"scale", "S"}, {"zero_point", "Z", Arity::Optional}},
                      .attributes = granularity("the dtype of the result"),
                      .results = {{"y", "$to"}},
                      .types = {{"T", Numbers}, {"S", Numbers}, {"Z", Numbers}},
                      .traits = {.takes_unranked = true},
                      .infer = infer_quantize,
                      .eval = eval_quantize,
                      .lower = lower_quantize,
                      .grad = no_gradient};
    quantize.attributes.push_back(
        {"saturate", AttributeKind::Bool,
         "floats out of range become the nearest there is, as integers always do; else infinity or NaN",
         true});
    OpDef dequantize = {.name = "dequantize",
                        .doc = "(x - zero_point) · scale",
                        .operands = {{"x", "Q"}, {"scale", "S"}, {"zero_point", "Q", Arity::Optional}},
                        .attributes = granularity("the dtype of the result, a float"),
                        .results = {{"y", "$to"}},
                        .types = {{"Q", Numbers}, {"S", Numbers}},
                        .traits = {.takes_unranked = true},
                        .infer = infer_dequantize,
                        .eval = eval_dequantize,
                        .lower = lower_dequantize,
                        .decompose = decompose_dequantize};
    const OpDef dynamic_quantize = {
        .name = "dynamic_quantize",
        .doc = "x in u8, with the scale and zero point by which its range, extended to 0, just fits",
        .operands = {{"x", "T"}},
        .results = {{"y", "u8"}, {"scale", "T"}, {"zero_point", "u8"}},
        .types = {{"T", {DType::F64, DType::F32, DType::F16, DType::BF16}}},
        .traits = {.takes_unranked = true},
        .infer = infer_dynamic_quantize,
        .eval = eval_dynamic_quantize,
        .decompose = decompose_dynamic_quantize};
    return Family{quantize, dequantize, dynamic_quantize};
  }();
  return ops;
}

namespace {

Value apply(std::string_view op, Value x, Value scale, Value zero_point, DType to, Granularity granularity) {
  return x.graph()
      .create(op, {{"x", x}, {"scale", scale}, {"zero_point", zero_point}},
              {{"to", to}, {"axis", granularity.axis}, {"block_size", granularity.block_size}})
      ->result();
}

}  // namespace

Value quantize(Value x, Value scale, Value zero_point, DType to, Granularity granularity) {
  return apply("quantize", x, scale, zero_point, to, granularity);
}

Value dequantize(Value x, Value scale, Value zero_point, DType to, Granularity granularity) {
  return apply("dequantize", x, scale, zero_point, to, granularity);
}

}  // namespace tenon
