// quantise.cpp — quantised numbers: pairs that undo each other, data moved while it is small, and limits that
// the range of the small dtype sets anyway.
#include "ops/quantise.h"

#include <algorithm>
#include <cmath>

#include "rewrite/rules/rules.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// --- what scales and zero points are ---

// Whether one scale is for the whole tensor, whatever its shape.
bool is_one_scale(const Node& node) {
  const Shape& shape = node.in("scale").shape();
  return node.attr("block_size").as<int64_t>() == 0 && shape.ranked() && shape.element_count() == Dim(1);
}

// Whether both use the same scales, zero points and axis.
bool have_same_scales(const Node& a, const Node& b) {
  const bool same_axis =
      is_one_scale(a) || (a.attr("axis") == b.attr("axis") && a.attr("block_size") == b.attr("block_size"));
  return same_axis && a.in("scale") == b.in("scale") && a.in("zero_point") == b.in("zero_point");
}

struct Bounds {
  double least, greatest;
};

// The scales with which neither a product with a small integer nor the quotient leaves the normal numbers.
std::optional<Bounds> tame_scales(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return Bounds{0x1p-900, 0x1p900};
    case DType::F32:
      return Bounds{0x1p-120, 0x1p100};
    case DType::F16:
      return Bounds{0x1p-14, 0x1p6};
    default:
      return std::nullopt;
  }
}

// Whether all scales are known, positive, and within the bounds.
bool are_within(Value scale, const Bounds& bounds) {
  const Tensor* known = known_elements(scale);
  if (known == nullptr)
    return false;
  const std::vector<double> scales = widen<double>(*known);
  return std::all_of(scales.begin(), scales.end(),
                     [&](double each) { return each >= bounds.least && each <= bounds.greatest; });
}

bool has_positive_scales(const Node& node) {
  return are_within(node.in("scale"), {std::numeric_limits<double>::denorm_min(), 1e300});
}

// Whether an integer that is dequantised and quantised again comes out as it was. Two roundings must move it
// by less than a half: 2^bits of them in a float of so many digits.
bool survives(const Node& dequantize) {
  const DType q = dequantize.in("x").dtype(), to = dequantize.attr("to"),
              scale = dequantize.in("scale").dtype();
  const auto bounds = tame_scales(to), scale_bounds = tame_scales(scale);
  if (!is_integer(q) || !bounds || !scale_bounds)
    return false;
  const bool is_half = to == DType::F16 || scale == DType::F16;
  if (info(q).bits > (is_half ? 8 : 16))
    return false;
  return are_within(dequantize.in("scale"), {std::max(bounds->least, scale_bounds->least),
                                             std::min(bounds->greatest, scale_bounds->greatest)});
}

// --- data movement ---

// Ops whose results are elements of x, wherever they go.
const std::set<std::string, std::less<>> kMovements = {"reshape", "squeeze", "unsqueeze", "transpose",
                                                       "slice",   "concat",  "gather"};
// Those of them that keep all elements.
const std::set<std::string, std::less<>> kRearrangements = {"reshape", "squeeze", "unsqueeze", "transpose"};

// The same movement of other data.
Value moved(const Node& movement, const std::vector<Value>& data) {
  std::vector<Operand> operands = {{"x", data}};
  for (const OperandDecl& operand : movement.op().operands)
    if (operand.name != "x")
      operands.emplace_back(operand.name, movement.ins(operand.name));
  for (std::string_view name : movement.late_names())
    operands.emplace_back(name, movement.late(name));
  return movement.graph().create(movement.op(), operands, movement.attributes())->result();
}

// The axis along which scales go once the data has moved; nothing where they would have to move too.
std::optional<int64_t> moved_axis(const Node& movement, const Node& quantised) {
  const int64_t axis = quantised.attr("axis");
  if (is_one_scale(quantised))
    return axis;
  if (!movement.is("transpose") || quantised.attr("block_size").as<int64_t>() != 0)
    return std::nullopt;
  const std::vector<int64_t>& permutation = movement.attr("permutation");
  const auto rank = static_cast<int64_t>(permutation.size());
  return std::find(permutation.begin(), permutation.end(), axis < 0 ? axis + rank : axis) -
         permutation.begin();
}

// The quantize or dequantize `like`, of other data.
Value with_scales_of(const Node& like, Value x, int64_t axis) {
  Attributes attributes = like.attributes();
  attributes.insert_or_assign("axis", axis);
  return x.graph()
      .create(like.op(), {{"x", x}, {"scale", like.in("scale")}, {"zero_point", like.in("zero_point")}},
              attributes)
      ->result();
}

// What a movement moves, where all of it is dequantised alike and for nothing else.
const Node* dequantised_alike(const Node& movement) {
  const Node* first = nullptr;
  for (Value x : movement.ins("x")) {
    const Node* node = maker(x, "dequantize");
    if (node == nullptr || !x.has_one_use() || (first != nullptr && !have_same_scales(*first, *node)))
      return nullptr;
    if (first != nullptr &&
        (first->attr("to") != node->attr("to") || first->in("x").dtype() != node->in("x").dtype()))
      return nullptr;
    first = first == nullptr ? node : first;
  }
  return first;
}

Rule movement_first() {
  const Pattern movement = result_of("movement", kMovements);
  return {.name = "movement-before-dequantize",
          .match = movement,
          .replace = {"dequantize(movement(x))",
                      [=](const Match& m) {
                        const Node &node = m.node(movement), &like = *dequantised_alike(node);
                        std::vector<Value> data;
                        for (Value x : node.ins("x"))
                          data.push_back(x.node()->in("x"));
                        return with_scales_of(like, moved(node, data), *moved_axis(node, like));
                      }},
          .when = {{"all that is moved is dequantised alike, and not used elsewhere",
                    [=](const Match& m) { return dequantised_alike(m.node(movement)) != nullptr; }},
                   {"the scales need not move",
                    [=](const Match& m) {
                      const Node& node = m.node(movement);
                      return moved_axis(node, *dequantised_alike(node)).has_value();
                    },
                    true}},
          .numerics = Numerics::BitExact,
          .fires =
              "(%a: i8[n,2], %b: i8[n,2], %z: i8[]) { %s = constant(value=T[] {0.5}) "
              "%0 = dequantize(%a, %s, %z, to=f32) %1 = dequantize(%b, %s, %z, to=f32) "
              "%y = concat([%0, %1], axis=0) return %y }",
          .stays =
              "(%a: i8[n,2], %b: i8[n,2], %z: i8[]) { %s = constant(value=f32[] {0.5}) "
              "%0 = dequantize(%a, %s, %z, to=f32) %1 = dequantize(%b, %s, to=f32) "
              "%y = concat([%0, %1], axis=0) return %y }"};
}

Rule quantize_first() {
  const Pattern outer = result_of("quantize");
  const auto movement_of = [=](const Match& m) -> const Node* {
    const Value x = m.node(outer).in("x");
    return !x.is_input() && kRearrangements.contains(x.node()->op().name) && x.has_one_use() ? x.node()
                                                                                             : nullptr;
  };
  return {.name = "quantize-before-movement",
          .match = outer,
          .replace = {"movement(quantize(x))",
                      [=](const Match& m) {
                        const Node &movement = *movement_of(m), &quantize = m.node(outer);
                        return moved(movement,
                                     {with_scales_of(quantize, movement.in("x"), quantize.attr("axis"))});
                      }},
          .when = {{"x is rearranged, and not used elsewhere",
                    [=](const Match& m) { return movement_of(m) != nullptr; }},
                   {"there is one scale", [=](const Match& m) { return is_one_scale(m.node(outer)); }}},
          .numerics = Numerics::BitExact,
          .fires =
              "(%x: T[n,2]) { %s = constant(value=f32[] {0.5}) %0 = transpose(%x, permutation=[1, 0]) "
              "%y = quantize(%0, %s, to=i8) return %y }",
          .stays =
              "(%x: T[n,2]) { %s = constant(value=f32[2] {0.5, 1}) "
              "%0 = transpose(%x, permutation=[1, 0]) %y = quantize(%0, %s, to=i8, axis=0) return %y }"};
}

// --- limits ---

// The result of quantize for one number, but for saturation.
double quantised(double number, double scale, DType scale_dtype, double zero_point) {
  const Tensor quotient = narrow<double>(scale_dtype, {}, {{number / scale}});
  return std::nearbyint(widen<double>(quotient).front()) + zero_point;
}

// What a relu or clip limits its operand to, as far as it does.
struct Limits {
  std::optional<double> low, high;
};

std::optional<Limits> limits_of(const Node& node) {
  if (node.is("relu"))
    return Limits{0, std::nullopt};
  Limits limits;
  for (const auto& [name, limit] : {std::pair("min", &limits.low), std::pair("max", &limits.high)})
    if (node.has(name)) {
      *limit = uniform_number(node.in(name));
      if (!*limit)
        return std::nullopt;
    }
  return limits;
}

// Whether all that is beyond the limits is out of the range of the dtype too, so that it comes to the same.
bool implies(const Node& quantize, const Limits& limits) {
  const DType to = quantize.attr("to"), dtype = quantize.in("scale").dtype();
  if (!is_integer(to) || info(to).bits > 16 || !tame_scales(dtype) || !has_positive_scales(quantize))
    return false;
  const Tensor* points = quantize.has("zero_point") ? known_elements(quantize.in("zero_point")) : nullptr;
  if (quantize.has("zero_point") && points == nullptr)
    return false;
  const std::vector<double> scales = widen<double>(*known_elements(quantize.in("scale"))),
                            zeros = points == nullptr ? std::vector<double>(scales.size(), 0)
                                                      : widen<double>(*points);
  const double bits = info(to).bits, least = is_unsigned(to) ? 0 : -std::exp2(bits - 1),
               greatest = std::exp2(is_unsigned(to) ? bits : bits - 1) - 1;
  for (size_t i = 0; i < scales.size(); ++i)
    if ((limits.low && quantised(*limits.low, scales[i], dtype, zeros[i]) > least) ||
        (limits.high && quantised(*limits.high, scales[i], dtype, zeros[i]) < greatest))
      return false;
  return true;
}

Rule limits_of_range() {
  const Pattern outer = result_of("quantize");
  const auto limit_of = [=](const Match& m) -> const Node* {
    const Value x = m.node(outer).in("x");
    return !x.is_input() && (x.node()->is("relu") || x.node()->is("clip")) ? x.node() : nullptr;
  };
  return {.name = "limits-of-quantize",
          .match = outer,
          .replace = {"quantize(x)",
                      [=](const Match& m) {
                        const Node& quantize = m.node(outer);
                        return with_scales_of(quantize, limit_of(m)->in("x"), quantize.attr("axis"));
                      }},
          .when = {{"x is limited by relu or clip", [=](const Match& m) { return limit_of(m) != nullptr; }},
                   {"the range of the result sets the same limits",
                    [=](const Match& m) {
                      const std::optional<Limits> limits = limits_of(*limit_of(m));
                      return limits && implies(m.node(outer), *limits);
                    },
                    true}},
          .numerics = Numerics::BitExact,
          .fires =
              "(%x: T[n,2]) { %s = constant(value=f32[] {0.0235}) %z = constant(value=u8[] {0}) "
              "%0 = relu(%x) %y = quantize(%0, %s, %z, to=u8) return %y }",
          .stays =
              "(%x: T[n,2]) { %s = constant(value=f32[] {0.0235}) %z = constant(value=u8[] {1}) "
              "%0 = relu(%x) %y = quantize(%0, %s, %z, to=u8) return %y }"};
}

// --- pairs ---

// A dequantize before a quantize with the same scales.
Rule pair() {
  const Pattern outer = result_of("quantize");
  const auto inner_of = [=](const Match& m) { return maker(m.node(outer).in("x"), "dequantize"); };
  return {.name = "quantize-of-dequantize",
          .match = outer,
          .replace = {"x", [=](const Match& m) { return inner_of(m)->in("x"); }},
          .when = {{"it was dequantised with the same scales",
                    [=](const Match& m) {
                      const Node* inner = inner_of(m);
                      return inner != nullptr && have_same_scales(m.node(outer), *inner) &&
                             inner->in("x").dtype() == m.root().dtype();
                    }},
                   {"rounding loses nothing: few bits, and a scale that is known and neither tiny nor huge",
                    [=](const Match& m) { return survives(*inner_of(m)); }, true}},
          .numerics = Numerics::BitExact,
          .fires =
              "(%x: T[n,2], %z: T[]) { %s = constant(value=f16[] {0.0137}) "
              "%0 = dequantize(%x, %s, %z, to=f32) %y = quantize(%0, %s, %z, to=i8) return %y }",
          .stays =
              "(%x: T[n,2], %z: T[]) { %s = constant(value=f32[] {0.0137}) "
              "%t = constant(value=f32[] {0.01}) "
              "%0 = dequantize(%x, %s, %z, to=f32) %y = quantize(%0, %t, %z, to=i8) return %y }"};
}

// Whether every window sees more than padding, which has another value for each dtype.
bool sees_something(const Node& pool) {
  const std::vector<int64_t>&pads = pool.attr("pads"), &kernel = pool.attr("kernel"),
        &dilations = pool.attr("dilations");
  for (size_t i = 0; i < pads.size(); ++i)
    if (pads[i] >= kernel[i % kernel.size()] || (pads[i] != 0 && dilations[i % kernel.size()] != 1))
      return false;
  return true;
}

Rule max_pool_first() {
  const Pattern pool = result_of("max_pool");
  const auto inner_of = [=](const Match& m) { return maker(m.node(pool).in("x"), "dequantize"); };
  return {.name = "max-pool-before-dequantize",
          .match = pool,
          .replace = {"dequantize(max_pool(x))",
                      [=](const Match& m) {
                        const Node &inner = *inner_of(m), &node = m.node(pool);
                        const Value greatest = moved(node, {inner.in("x")});
                        return with_scales_of(inner, greatest, inner.attr("axis"));
                      }},
          .when = {{"the indices are not wanted",
                    [=](const Match& m) {
                      return m.root().index() == 0 && m.node(pool).result(1).use_count() == 0;
                    }},
                   {"x is made of integers, and not used elsewhere",
                    [=](const Match& m) {
                      return inner_of(m) != nullptr && is_integer(inner_of(m)->in("x").dtype()) &&
                             m.node(pool).in("x").has_one_use();
                    }},
                   {"every window sees more than padding",
                    [=](const Match& m) { return sees_something(m.node(pool)); }},
                   {"there is one scale, and it is known to be positive",
                    [=](const Match& m) {
                      return is_one_scale(*inner_of(m)) && has_positive_scales(*inner_of(m));
                    },
                    true}},
          .numerics = Numerics::BitExact,
          .fires =
              "(%x: T[n,2,5], %z: T[]) { %s = constant(value=f32[] {0.3}) "
              "%0 = dequantize(%x, %s, %z, to=f32) "
              "%y, %i = max_pool(%0, kernel=[2], strides=[1], dilations=[1], pads=[1, 0]) return %y }",
          .stays =
              "(%x: i8[n,2,5], %z: i8[]) { %s = constant(value=f32[] {-0.3}) "
              "%0 = dequantize(%x, %s, %z, to=f32) "
              "%y, %i = max_pool(%0, kernel=[2], strides=[1], dilations=[1], pads=[1, 0]) return %y }"};
}

Rules make_rules() {
  return {pair(), movement_first(), quantize_first(), limits_of_range(), max_pool_first()};
}

}  // namespace

const Rules& quantise_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
