// elementwise.cpp — PyTorch's ops on one tensor that compute element by element, but for activations.
#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/truth.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

Value in_floats(const NodeView& n) {
  const Value x = n.tensor("self");
  return in_dtype(x, float_type(x.dtype()));
}

// Ops on floats: integers are converted first.
Convert on_floats(std::string_view op) {
  return [op](const NodeView& n) { return n.make(op, {{"x", in_floats(n)}}); };
}
Convert on_floats(Value (*formula)(const NodeView&, Value)) {
  return [formula](const NodeView& n) { return std::vector<Value>{formula(n, in_floats(n))}; };
}
// Ops on numbers of any kind.
Convert on_numbers(std::string_view op) {
  return [op](const NodeView& n) { return n.make(op, {{"x", n.tensor("self")}}); };
}
// Roundings: integers are round already.
Convert rounding(std::string_view op) {
  return [op](const NodeView& n) {
    const Value x = n.tensor("self");
    return is_float(x.dtype()) ? n.make(op, {{"x", x}}) : std::vector<Value>{x};
  };
}

Value truncated(const NodeView& n, Value x) {
  return where(less(x, n.number(x.dtype(), 0)), ceil(x), floor(x));
}

std::vector<Value> convert_trunc(const NodeView& n) {
  const Value x = n.tensor("self");
  return {is_float(x.dtype()) ? truncated(n, x) : x};
}
std::vector<Value> convert_frac(const NodeView& n) {
  return {n.tensor("self") - truncated(n, n.tensor("self"))};
}

// Where x is small, 1 + x would lose its digits: there log(1 + x) = 2 · atanh(x / (2 + x)).
Value log1p(const NodeView& n, Value x) {
  const Value small = less(abs(x), n.number(x.dtype(), 0.5));
  const Value argument = where(small, x, n.number(x.dtype(), 0));
  return where(small, 2.0 * n.make_one("atanh", {{"x", argument / (argument + 2.0)}}), log(x + 1.0));
}
// tanh(x / 2) · (exp(x) + 1), which loses no digits near 0.
Value expm1(const NodeView&, Value x) { return tanh(x * 0.5) * (exp(x) + 1.0); }
Value exp2(const NodeView& n, Value x) { return pow(n.number(x.dtype(), 2), x); }
Value log2(const NodeView&, Value x) { return log(x) / std::log(2.0); }
Value log10(const NodeView&, Value x) { return log(x) / std::log(10.0); }
Value rsqrt(const NodeView&, Value x) { return reciprocal(sqrt(x)); }
Value erfc(const NodeView&, Value x) { return 1.0 - erf(x); }

std::vector<Value> convert_square(const NodeView& n) { return {n.tensor("self") * n.tensor("self")}; }

std::vector<Value> convert_logical_not(const NodeView& n) {
  return {logical_not(truth_of(n.tensor("self")))};
}

std::vector<Value> convert_bitwise_not(const NodeView& n) {
  const Value x = n.tensor("self");
  return n.make(x.dtype() == DType::Bool ? "not" : "bit_not", {{"x", x}});
}

// --- the parts of a float

// Sign, exponent and mantissa of a dtype, as an integer of its width.
struct Format {
  DType integer;
  int mantissa_bits, exponent_bits;

  int64_t bias() const { return (int64_t{1} << (exponent_bits - 1)) - 1; }
};
Format format_of(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return {DType::I64, 52, 11};
    case DType::F32:
      return {DType::I32, 23, 8};
    case DType::F16:
      return {DType::I16, 10, 5};
    case DType::BF16:
      return {DType::I16, 7, 8};
    default:
      throw unsupported("the bits of {}", dtype);
  }
}

Value whole(Value like, int64_t value) {
  return constant(like.graph(), narrow<int64_t>(like.dtype(), {}, std::vector<int64_t>{value}));
}

// Whether it is less than 0, or -0, or a NaN with that sign.
Value sign_bit(Value x) {
  if (x.dtype() == DType::Bool || is_unsigned(x.dtype()))
    return logical_not(equal(x, x));
  const Value bits = is_float(x.dtype()) ? bit_cast(x, format_of(x.dtype()).integer) : x;
  return less(bits, whole(bits, 0));
}
std::vector<Value> convert_signbit(const NodeView& n) { return {sign_bit(n.tensor("self"))}; }

std::vector<Value> convert_copysign(const NodeView& n) {
  const Term first = n.term("self"), second = n.term("other");
  const DType dtype = float_type(result_type({first, second}));
  const Value size = abs(as_value(n.graph(), first, dtype));
  return {where(sign_bit(as_value(n.graph(), second, dtype)), -size, size)};
}

// The next float from a towards b. Read as integers, floats of one sign are in order of their size.
std::vector<Value> convert_nextafter(const NodeView& n) {
  const Term first = n.term("self"), second = n.term("other");
  const DType dtype = result_type({first, second});
  const Format format = format_of(dtype);
  const Value a = as_value(n.graph(), first, dtype), b = as_value(n.graph(), second, dtype);
  const Value bits = bit_cast(a, format.integer), zero = n.number(dtype, 0), one = whole(bits, 1);
  const Value grows = equal(less(a, b), less(zero, a));
  const Value moved = bit_cast(where(grows, bits + one, bits - one), dtype);
  const Value least = bit_cast(one, dtype);
  const Value from_zero = where(less(b, zero), -least, least);
  const Value next = where(equal(a, b), b, where(equal(a, zero), from_zero, moved));
  return {where(equal(a, a), where(equal(b, b), next, b), a)};
}

// x = mantissa · 2^exponent, with a mantissa from 0.5 to before 1. The exponent of a subnormal number does
// not say how large it is, so such numbers are made larger first.
std::vector<Value> convert_frexp(const NodeView& n) {
  const Value given = n.tensor("self");
  const Value x = info(given.dtype()).bits < 32 ? in_dtype(given, DType::F32) : given;
  const Format format = format_of(x.dtype());
  constexpr int64_t kMore = 64;
  const Value given_bits = bit_cast(x, format.integer),
              larger_bits = bit_cast(x * std::ldexp(1.0, kMore), format.integer);
  const auto both = [&](std::string_view op, Value a, Value b) {
    return n.make_one(op, {{"a", a}, {"b", b}});
  };
  const auto in_place = [&](int64_t exponent) { return whole(given_bits, exponent << format.mantissa_bits); };
  const Value field = in_place((int64_t{1} << format.exponent_bits) - 1), none = whole(given_bits, 0);
  const Value subnormal = equal(both("bit_and", given_bits, field), none);
  const Value bits = where(subnormal, larger_bits, given_bits);
  const Value place = whole(given_bits, format.mantissa_bits);
  const Value exponent =
      n.make_one("shift", {{"a", both("bit_and", bits, field)}, {"b", place}}, {{"direction", "right"}}) -
      whole(bits, format.bias() - 1) - where(subnormal, whole(bits, kMore), none);
  const Value rest = both("bit_and", bits, n.make_one("bit_not", {{"x", field}}));
  const Value mantissa = bit_cast(both("bit_or", rest, in_place(format.bias() - 1)), x.dtype());
  // Zero, infinities and NaN are their own mantissa.
  const Value other = logical_or(equal(x, n.number(x.dtype(), 0)), logical_not(equal(x - x, x - x)));
  return {in_dtype(where(other, x, mantissa), given.dtype()),
          in_dtype(where(other, none, exponent), DType::I32)};
}

// Of a real number: 0, or pi where it is negative.
std::vector<Value> convert_angle(const NodeView& n) {
  const Value x = in_floats(n);
  const Value angle =
      where(less(x, n.number(x.dtype(), 0)), n.number(x.dtype(), std::numbers::pi), n.number(x.dtype(), 0));
  return {where(is_nan(x), x, angle)};
}

// --- special functions

std::vector<Value> convert_polygamma(const NodeView& n) {
  const int64_t order = n.integer("n");
  if (order < 0)
    throw user_error("polygamma: n is {}", order);
  if (order == 0)
    return n.make("digamma", {{"x", in_floats(n)}});
  return n.make("polygamma", {{"x", in_floats(n)}}, {{"order", order}});
}

Convert bessel(std::string_view kind) {
  return [kind](const NodeView& n) {
    const Value x = n.tensor(n.has("x") ? "x" : "self");
    return n.make("bessel", {{"x", in_dtype(x, float_type(x.dtype()))}}, {{"kind", kind}});
  };
}
// Those that are called shifted are of 2x - 1.
Convert polynomial(std::string_view kind, bool shifted = false) {
  return [=](const NodeView& n) {
    const Term x = n.term("x"), degree = n.term("n");
    const DType dtype = float_type(result_type({x, degree}));
    const Value at = as_value(n.graph(), x, dtype);
    return n.make("orthogonal_polynomial",
                  {{"x", shifted ? at * 2.0 - 1.0 : at}, {"degree", as_value(n.graph(), degree, dtype)}},
                  {{"kind", kind}});
  };
}

// The logarithm of the multivariate gamma function of dimension p.
std::vector<Value> convert_mvlgamma(const NodeView& n) {
  const Value x = in_floats(n);
  const int64_t p = n.integer("p");
  if (p < 1)
    throw user_error("{}: p is {}", n.op(), p);
  Value sum = n.make_one("lgamma", {{"x", x}});
  for (int64_t k = 1; k < p; ++k)
    sum = sum + n.make_one("lgamma", {{"x", x - 0.5 * static_cast<double>(k)}});
  return {sum + std::log(std::numbers::pi) * 0.25 * static_cast<double>(p * (p - 1))};
}

std::vector<Value> convert_zeta(const NodeView& n) {
  const Term a = n.term("self"), b = n.term("other");
  const DType dtype = float_type(result_type({a, b}));
  return n.make("zeta", {{"a", as_value(n.graph(), a, dtype)}, {"b", as_value(n.graph(), b, dtype)}});
}

// The normal distribution function, and its logarithm: far below 0 by erfcx, as erf is -1 there.
Value ndtr(const NodeView&, Value x) { return 0.5 * (1.0 + erf(x * std::numbers::sqrt2 / 2)); }
Value log_ndtr(const NodeView& n, Value x) {
  const Value low = less(x, n.number(x.dtype(), -1)), t = x * (std::numbers::sqrt2 / 2);
  const Value scaled = n.make_one("erfcx", {{"x", -where(low, t, n.number(x.dtype(), 0))}});
  const Value high = log(0.5 * (1.0 + erf(where(low, n.number(x.dtype(), 0), t))));
  return where(low, log(scaled * 0.5) - t * t, high);
}

// sin(πx) / πx
Value sinc(const NodeView& n, Value x) {
  const Value zero = equal(x, n.number(x.dtype(), 0)),
              angle = where(zero, n.number(x.dtype(), 1), x * std::numbers::pi);
  return where(zero, n.number(x.dtype(), 1), sin(angle) / angle);
}
Value is_inf_or_false(const NodeView& n, Value x, bool positive, bool negative);
// sin(x) / x
std::vector<Value> convert_spherical_bessel(const NodeView& n) {
  const Value given = n.tensor(n.has("x") ? "x" : "self"), x = in_dtype(given, float_type(given.dtype()));
  const Value zero = equal(x, n.number(x.dtype(), 0)), infinite = is_inf_or_false(n, x, true, true);
  const Value safe = where(logical_or(zero, infinite), n.number(x.dtype(), 1), x);
  return {where(infinite, n.number(x.dtype(), 0), where(zero, n.number(x.dtype(), 1), sin(safe) / safe))};
}
// -x log(x), which is 0 at 0, and -inf below
Value entropy(const NodeView& n, Value x) {
  const Value zero = n.number(x.dtype(), 0),
              least = n.number(x.dtype(), -std::numeric_limits<double>::infinity());
  const Value positive = greater(x, zero), safe = where(positive, x, n.number(x.dtype(), 1));
  return where(positive, -safe * log(safe), where(less(x, zero), least, where(is_nan(x), x, zero)));
}
Value degrees(const NodeView&, Value x) { return x * (180 / std::numbers::pi); }
Value radians(const NodeView&, Value x) { return x * (std::numbers::pi / 180); }

// Rounded to a number of digits behind the point; in front of it, where the number is negative.
std::vector<Value> convert_round(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t decimals = n.integer("decimals", 0);
  if (!is_float(x.dtype()))
    return {x};
  if (decimals == 0)
    return {round(x)};
  const double power = std::pow(10.0, std::abs(decimals));
  return {decimals > 0 ? round(x * power) / power : round(x / power) * power};
}

// Integers are neither infinite nor NaN.
Value is_nan_or_false(Value x) { return is_float(x.dtype()) ? is_nan(x) : logical_not(equal(x, x)); }
Value is_inf_or_false(const NodeView& n, Value x, bool positive, bool negative) {
  if (!is_float(x.dtype()))
    return logical_not(equal(x, x));
  return n.make_one("is_inf", {{"x", x}}, {{"positive", positive}, {"negative", negative}});
}

std::vector<Value> convert_isnan(const NodeView& n) { return {is_nan_or_false(n.tensor("self"))}; }
std::vector<Value> convert_isinf(const NodeView& n) {
  return {is_inf_or_false(n, n.tensor("self"), true, true)};
}
std::vector<Value> convert_isfinite(const NodeView& n) {
  const Value x = n.tensor("self");
  return {logical_not(logical_or(is_nan_or_false(x), is_inf_or_false(n, x, true, true)))};
}

double greatest(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 1.7976931348623157e308;
    case DType::F16:
      return 65504;
    case DType::BF16:
      return 3.3895313892515355e38;
    default:
      return 3.4028234663852886e38;
  }
}

std::vector<Value> convert_nan_to_num(const NodeView& n) {
  const Value x = n.tensor("self");
  if (!is_float(x.dtype()))
    return {x};
  const auto put = [&](Value where_true, std::string_view name, double otherwise, Value y) {
    return where(where_true, n.number(x.dtype(), n.real(name, otherwise)), y);
  };
  Value y = put(is_nan(x), "nan", 0, x);
  y = put(is_inf_or_false(n, x, true, false), "posinf", greatest(x.dtype()), y);
  return {put(is_inf_or_false(n, x, false, true), "neginf", -greatest(x.dtype()), y)};
}

std::vector<Value> convert_logit(const NodeView& n) {
  Value x = in_floats(n);
  if (n.has("eps"))
    x = clip(x, n.number(x.dtype(), n.real("eps")), n.number(x.dtype(), 1 - n.real("eps")));
  return {log(x / (1.0 - x))};
}

// Of NaN it is 0.
std::vector<Value> convert_sign(const NodeView& n) {
  const Value x = n.tensor("self"), sign = n.make_one("sign", {{"x", x}});
  return {is_float(x.dtype()) ? where(is_nan(x), n.number(x.dtype(), 0), sign) : sign};
}

std::vector<Value> convert_identity(const NodeView& n) { return {n.tensor("self")}; }

}  // namespace

const Conversions& elementwise_conversions() {
  static const Conversions conversions = {
      {"abs", on_numbers("abs")},
      {"angle", convert_angle},
      {"copysign", convert_copysign},
      {"digamma", on_floats("digamma")},
      {"erfinv", on_floats("erfinv")},
      {"frexp", convert_frexp},
      {"i0", on_floats("bessel_i0")},
      {"lgamma", on_floats("lgamma")},
      {"nextafter", convert_nextafter},
      {"polygamma", convert_polygamma},
      {"signbit", convert_signbit},
      {"special_bessel_j0", bessel("j0")},
      {"special_bessel_j1", bessel("j1")},
      {"special_bessel_y0", bessel("y0")},
      {"special_bessel_y1", bessel("y1")},
      {"special_chebyshev_polynomial_t", polynomial("chebyshev_t")},
      {"special_chebyshev_polynomial_u", polynomial("chebyshev_u")},
      {"special_chebyshev_polynomial_v", polynomial("chebyshev_v")},
      {"special_chebyshev_polynomial_w", polynomial("chebyshev_w")},
      {"special_hermite_polynomial_h", polynomial("hermite_h")},
      {"special_hermite_polynomial_he", polynomial("hermite_he")},
      {"special_laguerre_polynomial_l", polynomial("laguerre_l")},
      {"special_legendre_polynomial_p", polynomial("legendre_p")},
      {"special_modified_bessel_k0", bessel("k0")},
      {"special_modified_bessel_k1", bessel("k1")},
      {"special_scaled_modified_bessel_k0", bessel("k0e")},
      {"special_scaled_modified_bessel_k1", bessel("k1e")},
      {"special_shifted_chebyshev_polynomial_t", polynomial("chebyshev_t", true)},
      {"special_shifted_chebyshev_polynomial_u", polynomial("chebyshev_u", true)},
      {"special_shifted_chebyshev_polynomial_v", polynomial("chebyshev_v", true)},
      {"special_shifted_chebyshev_polynomial_w", polynomial("chebyshev_w", true)},
      {"special_spherical_bessel_j0", convert_spherical_bessel},
      {"special_digamma", on_floats("digamma")},
      {"special_erfcx", on_floats("erfcx")},
      {"special_erfinv", on_floats("erfinv")},
      {"special_gammaln", on_floats("lgamma")},
      {"special_i0", on_floats("bessel_i0")},
      {"special_i0e", on_floats("bessel_i0e")},
      {"special_i1", on_floats("bessel_i1")},
      {"special_i1e", on_floats("bessel_i1e")},
      {"arccos", on_floats("acos")},
      {"arccosh", on_floats("acosh")},
      {"arcsin", on_floats("asin")},
      {"arcsinh", on_floats("asinh")},
      {"arctan", on_floats("atan")},
      {"arctanh", on_floats("atanh")},
      {"absolute", on_numbers("abs")},
      {"deg2rad", on_floats(radians)},
      {"negative", on_numbers("neg")},
      {"rad2deg", on_floats(degrees)},
      {"sinc", on_floats(sinc)},
      {"mvlgamma", convert_mvlgamma},
      {"special_multigammaln", convert_mvlgamma},
      {"special_entr", on_floats(entropy)},
      {"special_erf", on_floats("erf")},
      {"special_erfc", on_floats(erfc)},
      {"special_exp2", on_floats(exp2)},
      {"special_expit", on_floats("sigmoid")},
      {"special_expm1", on_floats(expm1)},
      {"special_log1p", on_floats(log1p)},
      {"special_log_ndtr", on_floats(log_ndtr)},
      {"special_ndtr", on_floats(ndtr)},
      {"special_round", convert_round},
      {"special_sinc", on_floats(sinc)},
      {"isneginf",
       [](const NodeView& n) {
         return std::vector<Value>{is_inf_or_false(n, n.tensor("self"), false, true)};
       }},
      {"isposinf",
       [](const NodeView& n) {
         return std::vector<Value>{is_inf_or_false(n, n.tensor("self"), true, false)};
       }},
      {"special_modified_bessel_i0", on_floats("bessel_i0")},
      {"special_modified_bessel_i1", on_floats("bessel_i1")},
      {"special_polygamma", convert_polygamma},
      {"special_psi", on_floats("digamma")},
      {"special_zeta", convert_zeta},
      {"acos", on_floats("acos")},
      {"acosh", on_floats("acosh")},
      {"asin", on_floats("asin")},
      {"asinh", on_floats("asinh")},
      {"atan", on_floats("atan")},
      {"atanh", on_floats("atanh")},
      {"bitwise_not", convert_bitwise_not},
      {"ceil", rounding("ceil")},
      {"cos", on_floats("cos")},
      {"cosh", on_floats("cosh")},
      {"erf", on_floats("erf")},
      {"erfc", on_floats(erfc)},
      {"exp", on_floats("exp")},
      {"exp2", on_floats(exp2)},
      {"expm1", on_floats(expm1)},
      {"fix", convert_trunc},
      {"floor", rounding("floor")},
      {"frac", convert_frac},
      {"isfinite", convert_isfinite},
      {"isinf", convert_isinf},
      {"isnan", convert_isnan},
      {"log", on_floats("log")},
      {"log10", on_floats(log10)},
      {"log1p", on_floats(log1p)},
      {"log2", on_floats(log2)},
      {"logical_not", convert_logical_not},
      {"logit", convert_logit},
      {"nan_to_num", convert_nan_to_num},
      {"neg", on_numbers("neg")},
      {"positive", convert_identity, Sharing::IfSame},
      {"reciprocal", on_floats("reciprocal")},
      {"round", convert_round},
      {"rsqrt", on_floats(rsqrt)},
      {"sgn", convert_sign},
      {"sign", convert_sign},
      {"sin", on_floats("sin")},
      {"sinh", on_floats("sinh")},
      {"sqrt", on_floats("sqrt")},
      {"square", convert_square},
      {"tan", on_floats("tan")},
      {"tanh", on_floats("tanh")},
      {"trunc", convert_trunc},
  };
  return conversions;
}

}  // namespace tenon::torch
