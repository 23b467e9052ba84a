// neutral.cpp — operations with an operand that changes nothing, or that decides everything. A constant that
// would broadcast x to another shape is no such operand: apply_rules compares the types.
#include <algorithm>

#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

Condition is_not_float(const Pattern& x) {
  return {x.to_string() + " is no float", [=](const Match& m) { return !is_float(m[x].dtype()); }};
}

// Whether every element of the result stands where one of x stands: all scales are 1, or all sizes stay.
bool keeps_all_sizes(const Node& resize) {
  const Value x = resize.in("x"), y = resize.result();
  if (resize.attr("positions").as<std::string>() == "crop" || !x.shape().ranked() || !y.shape().ranked())
    return false;
  if (resize.has("scales")) {
    const Tensor* scales = known_elements(resize.in("scales"));
    const std::span<const float> each = scales == nullptr ? std::span<const float>() : scales->data<float>();
    return scales != nullptr && std::all_of(each.begin(), each.end(), [](float scale) { return scale == 1; });
  }
  // With one scale for all, a size may stay by rounding alone.
  if (resize.attr("aspect").as<std::string>() != "stretch")
    return false;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (!provably_equal(x.dim(axis), y.dim(axis)))
      return false;
  return true;
}

// Interpolation computes in f64, which does not hold all numbers of 64 bits.
bool interpolates_wide_integers(const Node& resize) {
  const DType dtype = resize.result().dtype();
  return resize.attr("mode").as<std::string>() != "nearest" && is_integer(dtype) && info(dtype).bits == 64;
}

Rule resize_by_one() {
  const Pattern resize = result_of("resize");
  return {.name = "resize-by-one",
          .match = resize,
          .replace = {"x", [=](const Match& m) { return m.node(resize).in("x"); }},
          .when = {{"no size changes", [=](const Match& m) { return keeps_all_sizes(m.node(resize)); }},
                   {"f64 holds all elements",
                    [=](const Match& m) { return !interpolates_wide_integers(m.node(resize)); }}},
          .numerics = Numerics::BitExact,
          .fires =
              "(%x: T[n,2,m]) { %s = constant(value=f32[2] {1, 1}) "
              "%y = resize(%x, %s, axes=[2, 0], mode=\"linear\") %t = shape(%x) "
              "%z = resize(%x, sizes=%t, axes=[0, 1, 2], positions=\"align_corners\") return %y, %z }",
          .stays =
              "(%x: T[n,2,5]) { %s = constant(value=f32[1] {1.1}) %y = resize(%x, %s, axes=[2]) "
              "%t = constant(value=i64[1] {5}) %r = constant(value=f32[2] {0, 0.5}) "
              "%z = resize(%x, sizes=%t, region=%r, axes=[2], positions=\"crop\") return %y, %z }"};
}

Rules make_rules() {
  const Pattern x = any("x"), c = any("c");
  const Pattern zero = 0.0, one = 1.0, negative_zero = -0.0;
  const Pattern yes = 1.0, no = 0.0;
  Rules rules = {
      {.name = "add-negative-zero",
       .match = x + negative_zero,
       .replace = x,
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m]) { %z = constant(value=T[] {-0}) %y = add(%x, %z) return %y }",
       .stays = "(%x: T[m]) { %z = constant(value=T[2,1] {-0, -0}) %y = add(%x, %z) return %y }"},
      {.name = "add-zero-integer",
       .match = x + zero,
       .replace = x,
       .when = {is_not_float(x)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: i32[n,m]) { %z = constant(value=i32[] {0}) %y = add(%z, %x) return %y }",
       .stays = "(%x: f32[n,m]) { %z = constant(value=f32[] {0}) %y = add(%z, %x) return %y }"},
      // -0 + 0 is 0: another sign, but the same number.
      {.name = "add-zero",
       .match = x + zero,
       .replace = x,
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n,m]) { %z = constant(value=T[1] {0}) %y = add(%z, %x) return %y }",
       .stays = "(%x: T[n,1]) { %z = constant(value=T[3] {0, 0, 0}) %y = add(%z, %x) return %y }"},
      {.name = "subtract-zero",
       .match = x - zero,
       .replace = x,
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m]) { %z = constant(value=T[] {0}) %y = sub(%x, %z) return %y }",
       .stays = "(%x: T[n,m]) { %z = constant(value=T[] {0}) %y = sub(%z, %x) return %y }"},
      {.name = "multiply-by-one",
       .match = x * one,
       .replace = x,
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m]) { %1 = constant(value=T[] {1}) %y = mul(%x, %1) return %y }",
       .stays = "(%x: T[m]) { %1 = constant(value=T[2,3] splat 1) %y = mul(%x, %1) return %y }"},
      {.name = "divide-by-one",
       .match = x / one,
       .replace = x,
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m]) { %1 = constant(value=T[] {1}) %y = div(%x, %1) return %y }",
       .stays = "(%x: T[n,m]) { %1 = constant(value=T[] {1}) %y = div(%1, %x) return %y }"},
      {.name = "power-of-one",
       .match = op("pow", {{"a", x}, {"b", one}}),
       .replace = x,
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n,m]) { %1 = constant(value=T[] {1}) %y = pow(%x, %1) return %y }",
       .stays = "(%x: T[n,m]) { %1 = constant(value=T[] {1}) %y = pow(%1, %x) return %y }"},
      // Integers only: NaN · 0 and inf · 0 are NaN, and -1 · 0 is -0.
      {.name = "multiply-by-zero",
       .match = x * zero,
       .replace = filled_like(x, 0),
       .when = {is_integer(x)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: i64[n,m]) { %z = constant(value=i64[] {0}) %y = mul(%x, %z) return %y }",
       .stays = "(%x: f32[n,m]) { %z = constant(value=f32[] {0}) %y = mul(%x, %z) return %y }"},
      {.name = "multiply-by-zero-finite",
       .match = x * zero,
       .replace = filled_like(x, 0),
       .when = {is_float(x)},
       .numerics = Numerics::AssumesFinite,
       .fires = "(%x: f32[n,m]) { %z = constant(value=f32[] {0}) %y = mul(%x, %z) return %y }",
       .stays = "(%x: f32[n,m]) { %z = constant(value=f32[] {2}) %y = mul(%x, %z) return %y }"},
      {.name = "and-true",
       .match = op("and", {{"a", x}, {"b", yes}}),
       .replace = x,
       .numerics = Numerics::BitExact,
       .fires = "(%x: bool[n]) { %t = constant(value=bool[] {1}) %y = and(%x, %t) return %y }",
       .stays = "(%x: bool[n]) { %t = constant(value=bool[] {0}) %y = and(%x, %t) return %y }"},
      {.name = "or-false",
       .match = op("or", {{"a", x}, {"b", no}}),
       .replace = x,
       .numerics = Numerics::BitExact,
       .fires = "(%x: bool[n]) { %t = constant(value=bool[] {0}) %y = or(%x, %t) return %y }",
       .stays = "(%x: bool[n]) { %t = constant(value=bool[] {1}) %y = or(%x, %t) return %y }"},
      {.name = "where-same",
       .match = op("where", {{"condition", c}, {"a", x}, {"b", x}}),
       .replace = x,
       .numerics = Numerics::BitExact,
       .fires = "(%c: bool[n], %x: T[m,n]) { %y = where(%c, %x, %x) return %y }",
       .stays = "(%c: bool[n,1], %x: T[3]) { %y = where(%c, %x, %x) return %y }"},
  };
  const Pattern a = any("a"), b = any("b");
  rules.push_back({.name = "where-true",
                   .match = op("where", {{"condition", yes}, {"a", a}, {"b", b}}),
                   .replace = a,
                   .numerics = Numerics::BitExact,
                   .fires = "(%a: T[n], %b: T[n]) { %c = constant(value=bool[] {1}) "
                            "%y = where(%c, %a, %b) return %y }",
                   .stays = "(%a: T[1], %b: T[3]) { %c = constant(value=bool[] {1}) "
                            "%y = where(%c, %a, %b) return %y }"});
  rules.push_back({.name = "where-false",
                   .match = op("where", {{"condition", no}, {"a", a}, {"b", b}}),
                   .replace = b,
                   .numerics = Numerics::BitExact,
                   .fires = "(%a: T[n], %b: T[n]) { %c = constant(value=bool[] {0}) "
                            "%y = where(%c, %a, %b) return %y }",
                   .stays = "(%a: T[3], %b: T[1]) { %c = constant(value=bool[] {0}) "
                            "%y = where(%c, %a, %b) return %y }"});
  rules.push_back(resize_by_one());
  return rules;
}

}  // namespace

const Rules& neutral_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
