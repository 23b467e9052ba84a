// activation.cpp — activation functions that are written out in simpler ops. Which of them a formula is, is
// found out by running it (probe.h), so each has one rule, however exporters spell it; and so has each that
// only computes in a wider dtype than its operand and result have.
#include "ops/activation.h"

#include <cmath>

#include "ops/binary.h"
#include "ops/unary.h"
#include "rewrite/rules/rules.h"
#include "rewrite/rules/written_out.h"

namespace tenon {
namespace {

// A function that has no attributes.
Solver always(Value (*make)(Value)) {
  return one_function([=](Value x, const std::vector<Value>&) { return make(x); });
}

// What a function that comes to x for large x, as gelu and silu do, is multiplied with in this region. The
// numbers of a product are gathered at its end, so the half of gelu(x) · y stands behind y. Nothing for
// numbers so small that one function is not told from another.
std::optional<double> factor_at_large_x(const UnaryRegion& region) {
  constexpr double large = 300;  // whose exp still has a square
  const double factor = nearest_number(region, value_at(region, large) / large);
  return std::isfinite(factor) && std::fabs(factor) >= 0.25 ? std::optional(factor) : std::nullopt;
}

Function times(const std::function<Value(Value)>& make, double factor) {
  return [=](Value x, const std::vector<Value>&) { return factor == 1 ? make(x) : make(x) * factor; };
}

// A function that comes to x for large x, times any number.
Solver always_times_a_number(Value (*make)(Value)) {
  return elementwise([=](const UnaryRegion& region) -> std::optional<Function> {
    const std::optional<double> factor = factor_at_large_x(region);
    return factor ? std::optional(times(make, *factor)) : std::nullopt;
  });
}

// factor · x · sigmoid(alpha x): at 1 it is factor · sigmoid(alpha).
std::optional<Function> guess_silu(const UnaryRegion& region) {
  const std::optional<double> factor = factor_at_large_x(region);
  if (!factor)
    return std::nullopt;
  const double alpha = nearest_number(region, -std::log(*factor / value_at(region, 1) - 1));
  if (!std::isfinite(alpha) || alpha == 0)
    return std::nullopt;
  return times([=](Value x) { return silu(x, alpha); }, *factor);
}

std::optional<Function> guess_leaky_relu(const UnaryRegion& region) {
  const double alpha = nearest_number(region, -value_at(region, -1));
  if (alpha == 0 || std::fabs(alpha) == 1)  // relu(x), x, |x|
    return std::nullopt;
  return [=](Value x, const std::vector<Value>&) { return leaky_relu(x, alpha); };
}

// scale · x above zero; below it scale · alpha · (exp(input_scale x) - 1), which comes to -scale · alpha.
std::optional<Function> guess_elu(const UnaryRegion& region) {
  const double scale = nearest_number(region, value_at(region, 1));
  const double alpha = nearest_number(region, -value_at(region, -1e3) / scale);
  const double input_scale = nearest_number(region, -std::log1p(value_at(region, -1) / (scale * alpha)));
  if (!std::isfinite(input_scale) || !(input_scale > 0) || scale == 0)
    return std::nullopt;
  const EluScales scales = {.alpha = alpha, .scale = scale, .input_scale = input_scale};
  return [=](Value x, const std::vector<Value>&) { return elu(x, scales); };
}

// Its value at zero, where the line is not cut off, and how far it rises from there.
std::optional<Function> guess_hard_sigmoid(const UnaryRegion& region) {
  constexpr double step = 0x1p-10;
  const double beta = nearest_number(region, value_at(region, 0));
  const double alpha = nearest_number(region, (value_at(region, step) - beta) / step);
  if (!(beta > 0 && beta < 1) || alpha == 0)
    return std::nullopt;
  return [=](Value x, const std::vector<Value>&) { return hard_sigmoid(x, alpha, beta); };
}

Rules make_rules() {
  return {
      written_out("sigmoid", {"exp", "tanh", "sigmoid"}, "sigmoid(x)", always(sigmoid),
                  "(%x: T[n]) { %1 = constant(value=T[] {1}) %0 = neg(%x) %2 = exp(%0) %3 = add(%1, %2) "
                  "%y = div(%1, %3) return %y }",
                  "(%x: T[n]) { %1 = constant(value=T[] {1}) %2 = exp(%x) %3 = add(%1, %2) %y = div(%1, %3) "
                  "return %y }"),
      written_out("tanh", {"exp", "sigmoid", "tanh"}, "tanh(x)", always(tanh),
                  "(%x: T[n]) { %2 = constant(value=T[] {2}) %1 = constant(value=T[] {1}) %0 = mul(%x, %2) "
                  "%3 = sigmoid(%0) %4 = mul(%3, %2) %y = sub(%4, %1) return %y }",
                  "(%x: T[n]) { %2 = constant(value=T[] {2}) %1 = constant(value=T[] {1}) %3 = sigmoid(%x) "
                  "%4 = mul(%3, %2) %y = sub(%4, %1) return %y }"),
      written_out(
          "gelu", {"erf", "gelu"}, "gelu(x)", always_times_a_number(gelu),
          "(%x: T[n]) { %h = constant(value=T[] {0.5}) %r = constant(value=T[] {1.4142135623730951}) "
          "%1 = constant(value=T[] {1}) %0 = div(%x, %r) %2 = erf(%0) %3 = add(%2, %1) %4 = mul(%x, %h) "
          "%y = mul(%4, %3) return %y }",
          "(%x: T[n]) { %h = constant(value=T[] {0.5}) %r = constant(value=T[] {1.5}) "
          "%1 = constant(value=T[] {1}) %0 = div(%x, %r) %2 = erf(%0) %3 = add(%2, %1) %4 = mul(%x, %h) "
          "%y = mul(%4, %3) return %y }"),
      written_out("gelu-tanh", {"tanh", "sigmoid", "exp", "gelu"}, "gelu(x, approximate=tanh)",
                  always_times_a_number(gelu_tanh),
                  "(%x: T[n]) { %h = constant(value=T[] {0.5}) %k = constant(value=T[] {0.7978845608028654}) "
                  "%c = constant(value=T[] {0.044715}) %1 = constant(value=T[] {1}) %0 = mul(%x, %x) "
                  "%2 = mul(%0, %x) %3 = mul(%2, %c) %4 = add(%x, %3) %5 = mul(%4, %k) %6 = tanh(%5) "
                  "%7 = add(%6, %1) %8 = mul(%x, %7) %y = mul(%8, %h) return %y }",
                  "(%x: T[n]) { %h = constant(value=T[] {0.5}) %k = constant(value=T[] {0.7978845608028654}) "
                  "%c = constant(value=T[] {0.04}) %1 = constant(value=T[] {1}) %0 = mul(%x, %x) "
                  "%2 = mul(%0, %x) %3 = mul(%2, %c) %4 = add(%x, %3) %5 = mul(%4, %k) %6 = tanh(%5) "
                  "%7 = add(%6, %1) %8 = mul(%x, %7) %y = mul(%8, %h) return %y }"),
      written_out("silu", {"sigmoid", "exp", "tanh", "silu"}, "silu(x)", elementwise(guess_silu),
                  "(%x: T[n]) { %c = constant(value=T[] {1.702}) %0 = mul(%x, %c) %1 = sigmoid(%0) "
                  "%y = mul(%x, %1) return %y }",
                  "(%x: T[n], %z: T[n]) { %c = constant(value=T[] {1.702}) %0 = mul(%x, %c) %1 = sigmoid(%0) "
                  "%y = mul(%z, %1) return %y }"),
      written_out(
          "softplus", {"log", "softplus"}, "softplus(x)", always(softplus),
          "(%x: T[n]) { %1 = constant(value=T[] {1}) %0 = exp(%x) %2 = add(%0, %1) %y = log(%2) return %y }",
          "(%x: T[n]) { %1 = constant(value=T[] {2}) %0 = exp(%x) %2 = add(%0, %1) %y = log(%2) "
          "return %y }"),
      written_out("mish", {"tanh", "exp", "mish"}, "mish(x)", always_times_a_number(mish),
                  "(%x: T[n]) { %0 = softplus(%x) %1 = tanh(%0) %y = mul(%x, %1) return %y }",
                  "(%x: T[n]) { %0 = softplus(%x) %1 = sigmoid(%0) %y = mul(%x, %1) return %y }"),
      written_out("hard-swish", {"clip", "hard_sigmoid", "min", "relu", "hard_swish"}, "hard_swish(x)",
                  always_times_a_number(hard_swish),
                  "(%x: T[n]) { %3 = constant(value=T[] {3}) %0 = constant(value=T[] {0}) "
                  "%6 = constant(value=T[] {6}) %1 = add(%x, %3) %2 = clip(%1, %0, %6) %4 = mul(%x, %2) "
                  "%y = div(%4, %6) return %y }",
                  "(%x: T[n]) { %3 = constant(value=T[] {3}) %0 = constant(value=T[] {0}) "
                  "%6 = constant(value=T[] {6}) %1 = add(%x, %3) %2 = clip(%1, %0, %3) %4 = mul(%x, %2) "
                  "%y = div(%4, %6) return %y }"),
      written_out(
          "hard-sigmoid", {"clip", "min", "relu", "hard_sigmoid"}, "hard_sigmoid(x)",
          elementwise(guess_hard_sigmoid),
          "(%x: T[n]) { %3 = constant(value=T[] {3}) %0 = constant(value=T[] {0}) "
          "%6 = constant(value=T[] {6}) %1 = add(%x, %3) %2 = clip(%1, %0, %6) %y = div(%2, %6) return %y }",
          "(%x: T[n]) { %3 = constant(value=T[] {3}) %0 = constant(value=T[] {0}) "
          "%6 = constant(value=T[] {6}) %1 = add(%x, %3) %2 = clip(%1, %0, %6) %y = div(%2, %3) return %y }"),
      written_out(
          "leaky-relu", {"where", "max", "min", "relu", "clip", "abs", "leaky_relu"}, "leaky_relu(x)",
          elementwise(guess_leaky_relu),
          "(%x: T[n]) { %a = constant(value=T[] {0.1}) %0 = mul(%x, %a) %y = max(%x, %0) return %y }",
          "(%x: T[n]) { %a = constant(value=T[] {0.1}) %0 = add(%x, %a) %y = max(%x, %0) return %y }"),
      written_out("elu", {"exp", "elu"}, "elu(x)", elementwise(guess_elu),
                  "(%x: T[n]) { %z = constant(value=T[] {0}) %1 = constant(value=T[] {1}) "
                  "%a = constant(value=T[] {0.5}) %0 = exp(%x) %2 = sub(%0, %1) %3 = mul(%2, %a) "
                  "%4 = greater(%x, %z) %y = where(%4, %x, %3) return %y }",
                  "(%x: T[n]) { %z = constant(value=T[] {0}) %1 = constant(value=T[] {2}) "
                  "%a = constant(value=T[] {0.5}) %0 = exp(%x) %2 = sub(%0, %1) %3 = mul(%2, %a) "
                  "%4 = greater(%x, %z) %y = where(%4, %x, %3) return %y }"),
  };
}

}  // namespace

const Rules& activation_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
