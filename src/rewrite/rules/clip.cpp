// clip.cpp — limits: relu, clip, min, max and where of one value and numbers, one after the other, are one
// clip, or a relu.
#include "ops/data.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "rewrite/rules/rules.h"
#include "rewrite/rules/written_out.h"

namespace tenon {
namespace {

constexpr double kFar = 1e30;  // beyond all limits that models have

std::optional<Function> guess_relu(const UnaryRegion&) {
  return [](Value x, const std::vector<Value>&) { return relu(x); };
}

// Far away it is its limits; what goes on there has none. With none but 0 it is a relu.
std::optional<Function> guess_clip(const UnaryRegion& region) {
  const double least = value_at(region, -kFar), greatest = value_at(region, kFar);
  if (least == greatest || (least == 0 && greatest == kFar))
    return std::nullopt;
  return [=](Value x, const std::vector<Value>&) {
    const auto limit = [&](double number) { return scalar(x.graph(), x.dtype(), number); };
    const Value min = least == -kFar ? Value() : limit(least);
    return clip(x, min, greatest == kFar ? Value() : limit(greatest));
  };
}

// Where a NaN becomes 0.
Rule relu_of_finite() {
  Rule rule = written_out("relu-of-finite", {"where", "clip", "min", "max"}, "relu(x)",
                          elementwise(guess_relu, Specials::Ignored),
                          "(%x: f32[n]) { %z = constant(value=f32[] {0}) %c = greater(%x, %z) "
                          "%y = where(%c, %x, %z) return %y }",
                          "(%x: f32[n]) { %z = constant(value=f32[] {0}) %c = less(%x, %z) "
                          "%y = where(%c, %x, %z) return %y }");
  rule.numerics = Numerics::AssumesFinite;
  return rule;
}

Rules make_rules() {
  const std::set<std::string, std::less<>> limits = {"relu", "clip", "min", "max", "where"};
  return {
      relu_of_finite(),
      written_out("relu", limits, "relu(x)", elementwise(guess_relu),
                  "(%x: T[n]) { %z = constant(value=T[] {0}) %y = max(%x, %z) return %y }",
                  "(%x: T[n]) { %z = constant(value=T[] {0}) %y = min(%x, %z) return %y }"),
      written_out("clip", limits, "clip(x, least, greatest)", elementwise(guess_clip),
                  "(%x: T[n]) { %6 = constant(value=T[] {6}) %0 = relu(%x) %y = min(%0, %6) return %y }",
                  "(%x: T[n]) { %6 = constant(value=T[] {6}) %0 = relu(%x) %y = mul(%0, %6) return %y }"),
  };
}

}  // namespace

const Rules& clip_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
