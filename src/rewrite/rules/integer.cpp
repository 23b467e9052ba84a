// integer.cpp — products of integers that stand for quantised numbers, as products of the numbers: the one
// way in which a quantised layer is written, from which engines make their own. Its weights become small
// again.
#include <algorithm>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/quantise.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "rewrite/rules/rules.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// The two operands of an op whose order does not matter, the fixed one second.
struct WithFixed {
  Value x, fixed;
};

std::optional<WithFixed> with_fixed(Value value, std::string_view op) {
  const Node* node = maker(value, op);
  if (node == nullptr || !value.has_one_use())
    return std::nullopt;
  const Value a = node->in("a"), b = node->in("b");
  if (is_fixed(a) == is_fixed(b))
    return std::nullopt;
  return is_fixed(b) ? WithFixed{a, b} : WithFixed{b, a};
}

// Numbers of 8 bits, less their zero point.
struct Centred {
  Value integers;
  int64_t zero_point = 0;
};

std::optional<Centred> less_zero_point(Value wide, double zero_point) {
  const Node* cast = maker(wide, "cast");
  const DType dtype = cast != nullptr ? cast->in("x").dtype() : DType::I32;
  const double low = dtype == DType::I8 ? -128 : 0, high = dtype == DType::I8 ? 127 : 255;
  if ((dtype != DType::I8 && dtype != DType::U8) || zero_point < low || zero_point > high)
    return std::nullopt;
  return Centred{cast->in("x"), static_cast<int64_t>(zero_point)};
}

std::optional<Centred> centred(Value value) {
  if (const Node* add = maker(value, "add")) {
    const Value a = add->in("a"), b = add->in("b");
    for (const auto& [wide, shift] : {std::pair(a, b), std::pair(b, a)})
      if (const auto number = uniform_number(shift))
        return less_zero_point(wide, -*number);
    return std::nullopt;
  }
  if (const Node* sub = maker(value, "sub")) {
    const auto number = uniform_number(sub->in("b"));
    return number ? less_zero_point(sub->in("a"), *number) : std::nullopt;
  }
  return less_zero_point(value, 0);
}

// The same of weights; folding may have made integers of 32 bits of them, which are of 8 all the same.
std::optional<Centred> centred_weights(Value w) {
  if (maker(w, "constant") == nullptr)
    return is_fixed(w) ? centred(w) : std::nullopt;
  const std::vector<int64_t> weights = widen<int64_t>(w.node()->attr("value").as<Literal>().tensor());
  const bool are_small =
      std::all_of(weights.begin(), weights.end(), [](int64_t each) { return each >= -128 && each <= 127; });
  return are_small ? std::optional(Centred{w}) : std::nullopt;
}

// A layer of integers: quantize(cast(product(x, w) + bias) · scale).
struct IntegerLayer {
  const Node* product = nullptr;
  Centred x;
  Value w, bias, scale;

  bool is_conv() const { return product->is("conv"); }
};

std::optional<IntegerLayer> layer_of(const Node& quantize) {
  IntegerLayer layer;
  const auto scaled = with_fixed(quantize.in("x"), "mul");
  const Node* cast = scaled ? maker(scaled->x, "cast") : nullptr;
  if (cast == nullptr || !scaled->x.has_one_use() || cast->in("x").dtype() != DType::I32)
    return std::nullopt;
  Value sum = cast->in("x");
  if (const auto biased = with_fixed(sum, "add")) {
    layer.bias = biased->fixed;
    sum = biased->x;
  }
  layer.scale = scaled->fixed;
  const bool is_conv = maker(sum, "conv") != nullptr;
  if ((!is_conv && maker(sum, "matmul") == nullptr) || !sum.has_one_use() || !is_ranked(sum))
    return std::nullopt;
  layer.product = sum.node();
  const auto x = centred(layer.product->in(is_conv ? "x" : "a"));
  layer.w = layer.product->in(is_conv ? "w" : "b");
  if (!x || !is_ranked(layer.w) ||
      (!is_conv && (layer.product->attr("transpose_a").as<bool>() ||
                    layer.product->attr("transpose_b").as<bool>() || layer.w.rank() != 2)))
    return std::nullopt;
  layer.x = *x;
  return layer;
}

// Whether there is one of the values, or one for each channel of the result.
bool is_per_channel(const IntegerLayer& layer, Value value) {
  if (!is_ranked(value))
    return false;
  const int64_t rank = layer.product->result().rank(), channel = layer.is_conv() ? 1 - rank : -1;
  for (int64_t axis = -1; axis >= -value.rank(); --axis)
    if (axis != channel && value.dim(axis) != Dim(1))
      return false;
  return value.rank() <= rank;
}

// Whether so few products are added up for each result that a sum never overflows.
bool has_small_sums(const IntegerLayer& layer) {
  const auto extents = layer.w.shape().extents();
  constexpr int64_t kMostTerms = (int64_t{1} << 31) / (255 * 255) - 1;
  if (!extents)
    return false;
  const int64_t results = (*extents)[layer.is_conv() ? 0 : 1];
  return results > 0 && element_count(*extents) / results <= kMostTerms;
}

// The scale that x was quantised with; 1 where that is not known.
Value scale_of(const IntegerLayer& layer) {
  const Node* quantize = maker(layer.x.integers, "quantize");
  const Value scale = quantize != nullptr ? quantize->in("scale") : Value();
  const bool is_known = scale && is_fixed(scale) && is_ranked(scale) && scale.rank() == 0;
  return is_known && scale.dtype() == DType::F32 ? scale : scalar(layer.w.graph(), DType::F32, 1);
}

// The zero point as often as there are scales; nothing for 0.
Value zero_points(const Centred& centred, Value scale) {
  if (centred.zero_point == 0)
    return {};
  const Value one = scalar(scale.graph(), centred.integers.dtype(), static_cast<double>(centred.zero_point));
  return scale.rank() == 0 ? one : broadcast_to(one, int_vector(scale.graph(), *scale.shape().extents()));
}

Value with_numbers(const Node& quantize) {
  const IntegerLayer layer = *layer_of(quantize);
  const Centred weights = *centred_weights(layer.w);
  const bool is_one = layer.scale.shape().element_count() == Dim(1), is_conv = layer.is_conv();
  const Value x_scale = scale_of(layer), integers = weights.integers;
  const Value w_scale = reshape(layer.scale, is_one ? Extents() : Extents{-1}) / x_scale;
  const Value x = dequantize(layer.x.integers, x_scale, zero_points(layer.x, x_scale), DType::F32),
              w = dequantize(integers.dtype() == DType::I32 ? cast(integers, DType::I8) : integers, w_scale,
                             zero_points(weights, w_scale), DType::F32, {.axis = is_conv ? 0 : 1});
  Value y = quantize.graph()
                .create(layer.product->op(), {{is_conv ? "x" : "a", x}, {is_conv ? "w" : "b", w}},
                        layer.product->attributes())
                ->result();
  if (layer.bias)
    y = y + cast(layer.bias, DType::F32) * layer.scale;
  return quantize.graph()
      .create(quantize.op(),
              {{"x", y}, {"scale", quantize.in("scale")}, {"zero_point", quantize.in("zero_point")}},
              quantize.attributes())
      ->result();
}

Rules make_rules() {
  const Pattern quantize = result_of("quantize");
  const auto layer_in = [=](const Match& m) { return *layer_of(m.node(quantize)); };
  return {
      {.name = "integer-layer",
       .match = quantize,
       .replace = {"quantize(product(dequantize(x), dequantize(w)) + bias)",
                   [=](const Match& m) { return with_numbers(m.node(quantize)); }},
       .when = {{"x is a scaled sum of products of integers",
                 [=](const Match& m) { return layer_of(m.node(quantize)).has_value(); }},
                {"there is one scale and bias, or one for each channel",
                 [=](const Match& m) {
                   const IntegerLayer layer = layer_in(m);
                   return layer.scale.dtype() == DType::F32 && is_per_channel(layer, layer.scale) &&
                          (!layer.bias || is_per_channel(layer, layer.bias));
                 }},
                {"sums of products do not overflow",
                 [=](const Match& m) { return has_small_sums(layer_in(m)); }},
                {"the weights have 8 bits",
                 [=](const Match& m) { return centred_weights(layer_in(m).w).has_value(); }, true}},
       .numerics = Numerics::Reassociates,  // an integer may move by one step
       .fires =
           "(%q: T[n,2,3], %a: T[n,2]) { %0 = cast(%q, to=i32) %c = constant(value=i32[] {-3}) %1 = add(%0, "
           "%c) "
           "%w = constant(value=i32[2,2,1] {1, -2, 3, 127}) "
           "%2 = conv(%1, %w, strides=[1], dilations=[1], pads=[0, 1]) %b = constant(value=i32[2,1] {5, -6}) "
           "%3 = add(%2, %b) %4 = cast(%3, to=f32) %s = constant(value=f32[2,1] {0.5, 0.25}) %5 = mul(%4, "
           "%s) "
           "%t = constant(value=f32[] {2}) %z = constant(value=u8[] {9}) %y = quantize(%5, %t, %z, to=u8) "
           "%6 = cast(%a, to=i32) %v = constant(value=i32[2,3] {1, -2, 3, 4, 5, -128}) %7 = matmul(%6, %v) "
           "%8 = cast(%7, to=f32) %9 = mul(%8, %t) %x = quantize(%9, %t, to=i8) "
           "%u = parameter(name=\"u\", value=u8[2,3] {1, 2, 3, 255, 5, 0}) %10 = cast(%u, to=i32) "
           "%11 = constant(value=i32[] {128}) %12 = sub(%10, %11) %13 = matmul(%6, %12) %14 = cast(%13, "
           "to=f32) "
           "%15 = constant(value=f32[3] {0.5, 1, 2}) %16 = mul(%14, %15) %17 = quantize(%16, %t, to=i8) "
           "return %y, %x, %17 }",
       .stays = "(%q: u8[n,2,3]) { %0 = cast(%q, to=i32) %w = constant(value=i32[2,2,1] {1, -2, 3, 128}) "
                "%2 = conv(%0, %w, strides=[1], dilations=[1], pads=[0, 1]) "
                "%4 = cast(%2, to=f32) %s = constant(value=f32[2,1] {0.5, 0.25}) %5 = mul(%4, %s) "
                "%t = constant(value=f32[] {2}) %y = quantize(%5, %t, to=u8) return %y }"},
  };
}

}  // namespace

const Rules& integer_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
