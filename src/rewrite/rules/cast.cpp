// cast.cpp — conversions that change nothing, or that one conversion can do; and elements moved while they
// are small.
#include <algorithm>

#include "ops/reshape.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// How a dtype holds numbers: bits of precision, and the powers of two that its finite numbers reach.
struct Reach {
  int precision, least, greatest;
};

std::optional<Reach> reach_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return Reach{53, -1074, 1023};
    case DType::F32:
      return Reach{24, -149, 127};
    case DType::F16:
      return Reach{11, -24, 15};
    case DType::BF16:
      return Reach{8, -133, 127};
    default:
      return std::nullopt;
  }
}

// Whether every number of `from` is a number of `to`.
bool holds_all(DType to, DType from) {
  if (from == to)
    return true;
  if (from == DType::Bool)
    return is_integer(to) || reach_of(to);
  const auto digits = [](DType dtype) { return info(dtype).bits - (is_signed(dtype) ? 1 : 0); };
  if (is_integer(from) && is_integer(to))
    return digits(to) >= digits(from) && (is_signed(to) || is_unsigned(from));
  const std::optional<Reach> wide = reach_of(to), narrow = reach_of(from);
  if (is_integer(from) && wide)
    return wide->precision >= digits(from) && wide->greatest >= digits(from);
  return wide && narrow && wide->precision >= narrow->precision && wide->least <= narrow->least &&
         wide->greatest >= narrow->greatest;
}

// Whether x → between → to is x → to.
bool can_skip(DType x, DType between, DType to) {
  if (x == DType::String || to == DType::String || !holds_all(between, x))
    return false;
  // Integers out of range wrap around, but floats do not.
  const bool changes_kind = is_integer(x) && is_float(between) && is_integer(to);
  return !changes_kind || holds_all(to, x);
}

int bits_of(Value value) { return info(value.dtype()).bits; }

Value copy_onto(const Node& node, Value x) {
  return node.graph().copy_node(node, [=](Value) { return x; })->result();
}

Rules make_rules() {
  const Pattern x = any("x");
  const Pattern cast = result_of("cast");
  const Pattern widened = unary("cast", x).once(), moved = unary("transpose", x).once();
  const Pattern transposed = unary("transpose", widened), narrowed = unary("cast", moved);
  return {
      {.name = "cast-unchanged",
       .match = cast,
       .replace = {"x", [=](const Match& m) { return m.node(cast).in("x"); }},
       .when = {{"x has the dtype already",
                 [=](const Match& m) { return m.node(cast).in("x").dtype() == m.root().dtype(); }},
                {"nothing is saturated",
                 [=](const Match& m) { return !m.node(cast).attr("saturate").as<bool>(); }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: f32[n]) { %y = cast(%x, to=f32) return %y }",
       .stays = "(%x: f32[n]) { %y = cast(%x, to=f64) return %y }"},
      {.name = "cast-of-cast",
       .match = cast,
       .replace = {"cast(x)",
                   [=](const Match& m) {
                     return copy_onto(m.node(cast), m.node(cast).in("x").node()->in("x"));
                   }},
       .when = {{"x is a cast too",
                 [=](const Match& m) {
                   const Node* maker = m.node(cast).in("x").node();
                   return maker != nullptr && maker->is("cast");
                 }},
                {"the first cast loses nothing",
                 [=](const Match& m) {
                   const Value between = m.node(cast).in("x");
                   return can_skip(between.node()->in("x").dtype(), between.dtype(), m.root().dtype());
                 },
                 true}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n]) { %0 = cast(%x, to=f64) %1 = cast(%0, to=f32) %2 = cast(%x, to=i64) "
                "%3 = cast(%2, to=f32) return %1, %3 }",
       .stays = "(%x: f32[n]) { %0 = cast(%x, to=f16) %1 = cast(%0, to=f32) return %1 }"},
      {.name = "transpose-before-widening",
       .match = transposed,
       .replace = {"cast(transpose(x))",
                   [=](const Match& m) {
                     return copy_onto(m.node(widened), copy_onto(m.node(transposed), m[x]));
                   }},
       .when = {{"the cast makes elements wider",
                 [=](const Match& m) { return bits_of(m[widened]) > bits_of(m[x]) && bits_of(m[x]) > 0; }},
                // Else it would no longer meet what it cancels with.
                {"it is not transposed back, nor becomes part of a product",
                 [](const Match& m) {
                   const std::vector<Node*> users = m.root().users();
                   return std::none_of(users.begin(), users.end(), [](const Node* user) {
                     return user->is("transpose") || user->is("matmul");
                   });
                 }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: f16[n,m]) { %0 = cast(%x, to=f32) %y = transpose(%0, permutation=[1, 0]) return %y }",
       .stays = "(%x: f32[n,m]) { %0 = cast(%x, to=f16) %y = transpose(%0, permutation=[1, 0]) "
                "%1 = cast(%x, to=f64) %2 = transpose(%1, permutation=[1, 0]) "
                "%3 = transpose(%2, permutation=[1, 0]) return %y, %2, %3 }"},
      {.name = "transpose-after-narrowing",
       .match = narrowed,
       .replace = {"transpose(cast(x))",
                   [=](const Match& m) {
                     return copy_onto(m.node(moved), copy_onto(m.node(narrowed), m[x]));
                   }},
       .when = {{"the cast makes elements narrower",
                 [=](const Match& m) { return bits_of(m.root()) < bits_of(m[x]) && bits_of(m.root()) > 0; }}},
       .numerics = Numerics::BitExact,
       .fires = "(%x: f32[n,m]) { %0 = transpose(%x, permutation=[1, 0]) %y = cast(%0, to=f16) return %y }",
       .stays = "(%x: f16[n,m]) { %0 = transpose(%x, permutation=[1, 0]) %y = cast(%0, to=f32) return %y }"},
  };
}

}  // namespace

const Rules& cast_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
