// select.cpp — choices and comparisons with a negation that can go, and labels of labels.
#include "ir/evaluate.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

Pattern compare(std::string_view name, const Pattern& a, const Pattern& b) {
  return op(name, {{"a", a}, {"b", b}});
}

// Integers only: neither NaN < 1 nor NaN ≥ 1.
Rule negated_comparison(std::string_view name, std::string_view from, std::string_view to,
                        std::string_view fires, std::string_view stays) {
  const Pattern a = any("a"), b = any("b");
  return {.name = name,
          .match = unary("not", compare(from, a, b).once()),
          .replace = compare(to, a, b),
          .when = {is_integer(a)},
          .numerics = Numerics::BitExact,
          .fires = fires,
          .stays = stays};
}

Rule of_itself(std::string_view name, std::string_view op_name, std::string_view fires,
               std::string_view stays) {
  const Pattern x = any("x");
  return {.name = name,
          .match = compare(op_name, x, x),
          .replace = x,
          .numerics = Numerics::BitExact,
          .fires = fires,
          .stays = stays};
}

// Two maps of labels as one: its values are those of the first, mapped by the second.
Rule labels_of_labels() {
  const Pattern x = any("x"), first = unary("map_labels", x).once(), second = unary("map_labels", first);
  const auto mapped = [=](const Match& m, std::string_view attribute) {
    const Tensor labels = m.node(first).attr(attribute).as<Literal>().tensor();
    return Literal(evaluate_node(m.node(second), Data{labels}).front().tensor());
  };
  return {.name = "labels-of-labels",
          .match = second,
          .replace = {"map_labels(x)",
                      [=](const Match& m) {
                        Attributes attributes = m.node(first).attributes();
                        attributes.insert_or_assign("values", mapped(m, "values"));
                        attributes.insert_or_assign("otherwise", mapped(m, "otherwise"));
                        return m[x].graph().create("map_labels", {{"x", m[x]}}, attributes)->result();
                      }},
          .numerics = Numerics::BitExact,
          .fires =
              "(%x: i64[n]) { %0 = map_labels(%x, keys=i64[3] {1, 2, 3}, values=i32[3] {4, 5, 6}, "
              "otherwise=i32[] {7}) %y = map_labels(%0, keys=i32[2] {7, 5}, values=f32[2] {0.5, 2}, "
              "otherwise=f32[] {-1}) return %y }",
          .stays =
              "(%x: i64[n]) { %0 = map_labels(%x, keys=i64[3] {1, 2, 3}, values=i32[3] {4, 5, 6}, "
              "otherwise=i32[] {7}) %y = map_labels(%0, keys=i32[2] {7, 5}, values=f32[2] {0.5, 2}, "
              "otherwise=f32[] {-1}) return %y, %0 }"};
}

Rules make_rules() {
  const Pattern c = any("c"), a = any("a"), b = any("b");
  const Pattern yes = 1.0, no = 0.0;
  const auto where = [](const Pattern& condition, const Pattern& x, const Pattern& y) {
    return op("where", {{"condition", condition}, {"a", x}, {"b", y}});
  };
  const Condition chooses_truth = {"it chooses a bool",
                                   [](const Match& m) { return m.root().dtype() == DType::Bool; }};
  return {
      {.name = "where-not",
       .match = where(unary("not", c), a, b),
       .replace = where(c, b, a),
       .numerics = Numerics::BitExact,
       .fires = "(%c: bool[n], %a: T[m,n], %b: T[n]) { %0 = not(%c) %y = where(%0, %a, %b) return %y }",
       .stays = "(%c: bool[n], %a: T[m,n], %b: T[n]) { %y = where(%c, %a, %b) return %y }"},
      {.name = "where-true-false",
       .match = where(c, yes, no),
       .replace = c,
       .when = {chooses_truth},
       .numerics = Numerics::BitExact,
       .fires = "(%c: bool[n]) { %t = constant(value=bool[] {1}) %f = constant(value=bool[] {0}) "
                "%y = where(%c, %t, %f) return %y }",
       .stays = "(%c: bool[n]) { %t = constant(value=i64[] {1}) %f = constant(value=i64[] {0}) "
                "%y = where(%c, %t, %f) return %y }"},
      {.name = "where-false-true",
       .match = where(c, no, yes),
       .replace = unary("not", c),
       .when = {chooses_truth},
       .numerics = Numerics::BitExact,
       .fires = "(%c: bool[n]) { %t = constant(value=bool[] {1}) %f = constant(value=bool[] {0}) "
                "%y = where(%c, %f, %t) return %y }",
       .stays = "(%c: bool[n]) { %t = constant(value=i64[] {1}) %f = constant(value=i64[] {0}) "
                "%y = where(%c, %f, %t) return %y }"},
      negated_comparison("not-less", "less", "greater_equal",
                         "(%a: i32[n], %b: i32[n]) { %0 = less(%a, %b) %y = not(%0) return %y }",
                         "(%a: f32[n], %b: f32[n]) { %0 = less(%a, %b) %y = not(%0) return %y }"),
      negated_comparison("not-less-equal", "less_equal", "greater",
                         "(%a: i32[n], %b: i32[n]) { %0 = less_equal(%a, %b) %y = not(%0) return %y }",
                         "(%a: f32[n], %b: f32[n]) { %0 = less_equal(%a, %b) %y = not(%0) return %y }"),
      negated_comparison("not-greater", "greater", "less_equal",
                         "(%a: i32[n], %b: i32[n]) { %0 = greater(%a, %b) %y = not(%0) return %y }",
                         "(%a: i32[n], %b: i32[n]) { %0 = greater(%a, %b) %y = not(%0) return %y, %0 }"),
      negated_comparison("not-greater-equal", "greater_equal", "less",
                         "(%a: i32[n], %b: i32[n]) { %0 = greater_equal(%a, %b) %y = not(%0) return %y }",
                         "(%a: f32[n], %b: f32[n]) { %0 = greater_equal(%a, %b) %y = not(%0) return %y }"),
      of_itself("and-itself", "and", "(%x: bool[n]) { %y = and(%x, %x) return %y }",
                "(%x: bool[n], %z: bool[n]) { %y = and(%x, %z) return %y }"),
      of_itself("or-itself", "or", "(%x: bool[n]) { %y = or(%x, %x) return %y }",
                "(%x: bool[n], %z: bool[n]) { %y = or(%x, %z) return %y }"),
      of_itself("max-of-itself", "max", "(%x: T[n]) { %y = max(%x, %x) return %y }",
                "(%x: T[n], %z: T[n]) { %y = max(%x, %z) return %y }"),
      of_itself("min-of-itself", "min", "(%x: T[n]) { %y = min(%x, %x) return %y }",
                "(%x: T[n], %z: T[n]) { %y = min(%x, %z) return %y }"),
      labels_of_labels(),
  };
}

}  // namespace

const Rules& select_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
