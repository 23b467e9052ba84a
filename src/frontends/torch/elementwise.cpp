// elementwise.cpp — PyTorch's ops on one tensor that compute element by element, but for activations.
#include <cmath>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/truth.h"
#include "ops/binary.h"
#include "ops/select.h"
#include "ops/unary.h"

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

// Integers are neither infinite nor NaN.
Value is_nan_or_false(Value x) { return is_float(x.dtype()) ? is_nan(x) : logical_not(equal(x, x)); }
Value is_inf_or_false(const NodeView& n, Value x, bool positive = true, bool negative = true) {
  if (!is_float(x.dtype()))
    return logical_not(equal(x, x));
  return n.make_one("is_inf", {{"x", x}}, {{"positive", positive}, {"negative", negative}});
}

std::vector<Value> convert_isnan(const NodeView& n) { return {is_nan_or_false(n.tensor("self"))}; }
std::vector<Value> convert_isinf(const NodeView& n) { return {is_inf_or_false(n, n.tensor("self"))}; }
std::vector<Value> convert_isfinite(const NodeView& n) {
  const Value x = n.tensor("self");
  return {logical_not(logical_or(is_nan_or_false(x), is_inf_or_false(n, x)))};
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
      {"round", rounding("round")},
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
