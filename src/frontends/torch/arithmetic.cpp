// arithmetic.cpp — PyTorch's ops on two or more tensors or numbers that compute element by element.
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/polar.h"
#include "frontends/torch/truth.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/unary.h"

namespace tenon::torch {
namespace {

// Two operands in the dtype that they promote to.
struct Pair {
  Value a, b;
  DType dtype;

  Pair(const NodeView& n, const Term& first, const Term& second)
      : Pair(n, first, second, result_type({first, second})) {}
  Pair(const NodeView& n, const Term& first, const Term& second, DType in)
      : a(as_value(n.graph(), first, in)), b(as_value(n.graph(), second, in)), dtype(in) {}
};

Pair operands(const NodeView& n) { return {n, n.term("self"), n.term("other")}; }

// The second operand of a sum, times alpha.
Value scaled(const NodeView& n, Value x) {
  if (!n.has("alpha"))
    return x;
  const Term alpha = n.term("alpha");
  if (alpha.is_number() && !alpha.value() &&
      std::visit([](auto number) { return number == 1; }, alpha.number()))
    return x;
  return x * as_value(n.graph(), alpha, x.dtype());
}

// Truths add up to whether one of them holds.
std::vector<Value> convert_add(const NodeView& n) {
  const Pair pair = operands(n);
  const Value b = scaled(n, pair.b);
  return {pair.dtype == DType::Bool ? logical_or(pair.a, b) : pair.a + b};
}
std::vector<Value> convert_sub(const NodeView& n) {
  const Pair pair = operands(n);
  return {pair.a - scaled(n, pair.b)};
}
std::vector<Value> convert_rsub(const NodeView& n) {
  const Pair pair = operands(n);
  return {pair.b - scaled(n, pair.a)};
}
std::vector<Value> convert_mul(const NodeView& n) {
  const Pair pair = operands(n);
  return {pair.dtype == DType::Bool ? logical_and(pair.a, pair.b) : pair.a * pair.b};
}

// --- division

Pair divided(const NodeView& n) {
  const Term a = n.term("self"), b = n.term("other");
  return {n, a, b, float_type(result_type({a, b}))};
}

// Rounded down; of floats as Python does, from the remainder. There is none by 0, and none that is finite by
// infinity.
Value floor_division(const NodeView& n, const Pair& pair) {
  const Value quotient = (pair.a - mod(pair.a, pair.b)) / pair.b;
  if (!is_float(pair.dtype))
    return quotient;
  const auto number = [&](double value) { return n.number(pair.dtype, value); };
  const Value infinity = number(std::numeric_limits<double>::infinity()), zero = number(0);
  const Value by_infinity = logical_and(equal(abs(pair.b), infinity), less(abs(pair.a), infinity));
  const Value below = where(less(pair.a * pair.b, zero), number(-1), zero);
  return where(equal(pair.b, zero), pair.a / pair.b, where(by_infinity, below, round(quotient)));
}

std::vector<Value> convert_div(const NodeView& n) {
  const std::string rounding = n.text("rounding_mode", "");
  if (rounding.empty()) {
    const Pair pair = divided(n);
    return {pair.a / pair.b};
  }
  const Pair pair = operands(n);
  if (rounding == "floor")
    return {floor_division(n, pair)};
  if (rounding != "trunc")
    throw user_error("div: rounding_mode is \"{}\", but must be floor or trunc", rounding);
  const Value quotient = pair.a / pair.b;
  if (!is_float(pair.dtype))
    return {quotient};
  return {where(less(quotient, n.number(pair.dtype, 0)), ceil(quotient), floor(quotient))};
}
std::vector<Value> convert_floor_divide(const NodeView& n) { return {floor_division(n, operands(n))}; }

std::vector<Value> convert_remainder(const NodeView& n) {
  const Pair pair = operands(n);
  return {mod(pair.a, pair.b)};
}
std::vector<Value> convert_fmod(const NodeView& n) {
  const Pair pair = operands(n);
  return n.make("mod", {{"a", pair.a}, {"b", pair.b}}, {{"sign_of_dividend", true}});
}

std::vector<Value> convert_pow(const NodeView& n) {
  const Pair pair(n, n.term("self"), n.term("exponent"));
  return {pow(pair.a, pair.b)};
}

// In 64 bits.
std::vector<Value> convert_float_power(const NodeView& n) {
  const Pair pair(n, n.term("self"), n.term("exponent"), DType::F64);
  return {pow(pair.a, pair.b)};
}

// --- others

Convert extremum(std::string_view of_numbers, std::string_view of_truths) {
  return [=](const NodeView& n) {
    const Pair pair = operands(n);
    return n.make(pair.dtype == DType::Bool ? of_truths : of_numbers, {{"a", pair.a}, {"b", pair.b}});
  };
}

// Truths are compared as the numbers 0 and 1.
Convert comparison(std::string_view op, bool negated = false) {
  return [=](const NodeView& n) {
    const Pair pair = operands(n);
    const bool as_numbers = pair.dtype == DType::Bool && op != "equal";
    const DType dtype = as_numbers ? DType::U8 : pair.dtype;
    const Value y = n.make_one(op, {{"a", in_dtype(pair.a, dtype)}, {"b", in_dtype(pair.b, dtype)}});
    return std::vector<Value>{negated ? logical_not(y) : y};
  };
}

Convert logical(std::string_view op) {
  return [op](const NodeView& n) {
    const Pair pair = operands(n);
    return n.make(op, {{"a", truth_of(pair.a)}, {"b", truth_of(pair.b)}});
  };
}

Convert bitwise(std::string_view of_integers, std::string_view of_truths) {
  return extremum(of_integers, of_truths);
}
Convert shift(std::string_view direction) {
  return [direction](const NodeView& n) {
    const Pair pair = operands(n);
    return n.make("shift", {{"a", pair.a}, {"b", pair.b}}, {{"direction", direction}});
  };
}

std::vector<Value> convert_atan2(const NodeView& n) {
  const Pair pair = divided(n);
  return {angle_of(pair.a, pair.b)};
}

// NaN only where both are.
Convert extremum_of_numbers(Value (*formula)(Value, Value)) {
  return [formula](const NodeView& n) {
    const Pair pair = operands(n);
    if (!is_float(pair.dtype))
      return std::vector<Value>{
          pair.dtype == DType::Bool
              ? in_dtype(formula(in_dtype(pair.a, DType::U8), in_dtype(pair.b, DType::U8)), DType::Bool)
              : formula(pair.a, pair.b)};
    return std::vector<Value>{
        where(is_nan(pair.a), pair.b, where(is_nan(pair.b), pair.a, formula(pair.a, pair.b)))};
  };
}

std::vector<Value> convert_hypot(const NodeView& n) {
  const Pair pair = operands(n);
  return {length_of(pair.a, pair.b)};
}

// a · log(b), or log(1 + b), which is 0 where a is.
Convert times_logarithm(double more) {
  return [more](const NodeView& n) {
    const Pair pair = divided(n);
    const Value none = equal(pair.a, n.number(pair.dtype, 0)), b = more == 0 ? pair.b : pair.b + more;
    const Value y = pair.a * log(where(none, n.number(pair.dtype, 1), b));
    return std::vector<Value>{
        where(logical_and(none, equal(pair.b, pair.b)), n.number(pair.dtype, 0), where(none, pair.b, y))};
  };
}

// Whether two are so near as the tolerances say.
std::vector<Value> convert_isclose(const NodeView& n) {
  const Pair pair = operands(n);
  const DType dtype = float_type(pair.dtype);
  const Value a = in_dtype(pair.a, dtype), b = in_dtype(pair.b, dtype), distance = abs(a - b);
  const Value near = less_equal(distance, n.real("atol", 1e-8) + n.real("rtol", 1e-5) * abs(b));
  const Value finite = less(distance, n.number(dtype, std::numeric_limits<double>::infinity()));
  const Value close = logical_or(equal(pair.a, pair.b), logical_and(near, finite));
  if (!n.flag("equal_nan", false) || !is_float(pair.dtype))
    return {close};
  return {logical_or(close, logical_and(is_nan(a), is_nan(b)))};
}

// 0 below 0, 1 above, and what is given at 0
std::vector<Value> convert_heaviside(const NodeView& n) {
  const Value x = n.tensor("self"), zero = n.number(x.dtype(), 0), one = n.number(x.dtype(), 1);
  const Value step = where(less(zero, x), one, where(less(x, zero), zero, n.tensor("values")));
  return {is_float(x.dtype()) ? where(is_nan(x), x, step) : step};
}

std::vector<Value> convert_ldexp(const NodeView& n) {
  const Pair pair = divided(n);
  return {pair.a * pow(n.number(pair.dtype, 2), pair.b)};
}

// Without a sign.
std::vector<Value> convert_gcd(const NodeView& n) {
  const Pair pair = operands(n);
  return n.make("gcd", {{"a", pair.a}, {"b", pair.b}});
}
std::vector<Value> convert_lcm(const NodeView& n) {
  const Pair pair = operands(n);
  const Value divisor = n.make_one("gcd", {{"a", pair.a}, {"b", pair.b}});
  const Value none = equal(divisor, n.number(pair.dtype, 0));
  const Value multiple = pair.a / where(none, n.number(pair.dtype, 1), divisor) * pair.b;
  return {is_unsigned(pair.dtype) ? multiple : abs(multiple)};
}

std::vector<Value> convert_logaddexp(const NodeView& n) {
  const Pair pair = operands(n);
  const Value greater_one = maximum(pair.a, pair.b), difference = -abs(pair.a - pair.b);
  // Infinities have no difference.
  return {where(equal(pair.a, pair.b), pair.a + std::numbers::ln2, greater_one + log(1.0 + exp(difference)))};
}

std::vector<Value> convert_logaddexp2(const NodeView& n) {
  const Pair pair = operands(n);
  const Value greater_one = maximum(pair.a, pair.b), difference = -abs(pair.a - pair.b) * std::numbers::ln2;
  return {where(equal(pair.a, pair.b), pair.a + 1.0,
                greater_one + log(1.0 + exp(difference)) / std::numbers::ln2)};
}

// self + value · tensor1 · tensor2, or tensor1 / tensor2
std::vector<Value> convert_addc(const NodeView& n, bool divides) {
  const Term self = n.term("self"), first = n.term("tensor1"), second = n.term("tensor2");
  const DType dtype = result_type({self, first, second});
  const auto in = [&](const Term& term) { return as_value(n.graph(), term, dtype); };
  const double value = n.real("value", 1);
  const Value a = value == 1 ? in(first) : in(first)*value;
  return {in(self) + (divides ? a / in(second) : a * in(second))};
}
std::vector<Value> convert_addcmul(const NodeView& n) { return convert_addc(n, false); }
std::vector<Value> convert_addcdiv(const NodeView& n) { return convert_addc(n, true); }

std::vector<Value> convert_lerp(const NodeView& n) {
  const Value start = n.tensor("self"), end = n.tensor("end");
  return {start + as_value(n.graph(), n.term("weight"), start.dtype()) * (end - start)};
}

std::vector<Value> convert_where(const NodeView& n) {
  const Pair pair = operands(n);
  return {where(truth_of(n.tensor("condition")), pair.a, pair.b)};
}

// The dtype stays that of self.
std::vector<Value> convert_masked_fill(const NodeView& n) {
  const Value x = n.tensor("self");
  return {where(n.tensor("mask"), as_value(n.graph(), n.term("value"), x.dtype()), x)};
}

std::vector<Value> convert_clamp(const NodeView& n) {
  std::vector<Term> terms = {n.term("self")};
  for (std::string_view name : {"min", "max"})
    if (n.has(name))
      terms.push_back(n.term(name));
  const DType dtype = result_type(terms);
  const auto bound = [&](std::string_view name) {
    return n.has(name) ? as_value(n.graph(), n.term(name), dtype) : Value();
  };
  const Value x = as_value(n.graph(), terms.front(), dtype), least = bound("min"), greatest = bound("max");
  const bool numbers = (!least || least.rank() == 0) && (!greatest || greatest.rank() == 0);
  if (numbers)
    return {clip(x, least, greatest)};
  const Value raised = least ? maximum(x, least) : x;
  return {greatest ? minimum(raised, greatest) : raised};
}

}  // namespace

Value length_of(Value a, Value b) {
  const auto number = [&](double value) { return scalar(a.graph(), a.dtype(), value); };
  a = abs(a);
  b = abs(b);
  const Value longer = maximum(a, b), infinity = number(std::numeric_limits<double>::infinity());
  const Value ratio = minimum(a, b) / longer;
  const Value length = longer * sqrt(1.0 + ratio * ratio);
  const Value infinite = logical_or(equal(a, infinity), equal(b, infinity));
  return where(infinite, infinity, where(equal(longer, number(0)), longer, length));
}

Value angle_of(Value a, Value b) {
  const auto number = [&](double value) { return scalar(a.graph(), a.dtype(), value); };
  const auto apply = [&](std::string_view op, Value x) {
    return x.graph().create(op, {{"x", x}}, {})->result();
  };
  const Value zero = number(0);
  const auto with_sign_of_a = [&](double angle) {
    return where(less(a, zero), number(-angle), number(angle));
  };
  // Of two infinities, as of two ones.
  const Value infinity = number(std::numeric_limits<double>::infinity());
  const Value are_infinite = logical_and(equal(abs(a), infinity), equal(abs(b), infinity));
  const Value ratio = where(are_infinite, apply("sign", a) * apply("sign", b), a / b);
  const Value half = apply("atan", ratio);
  const Value on_axis =
      where(equal(a, a), where(equal(a, zero), zero, with_sign_of_a(std::numbers::pi / 2)), a);
  const Value left = half + with_sign_of_a(std::numbers::pi);
  return where(greater(b, zero), half, where(less(b, zero), left, on_axis));
}

const Conversions& arithmetic_conversions() {
  static const Conversions conversions = {
      {"__and__", bitwise("bit_and", "and")},
      {"__lshift__", shift("left")},
      {"__or__", bitwise("bit_or", "or")},
      {"__rshift__", shift("right")},
      {"__xor__", bitwise("bit_xor", "xor")},
      {"add", convert_add},
      {"addcdiv", convert_addcdiv},
      {"addcmul", convert_addcmul},
      {"atan2", convert_atan2},
      {"bitwise_and", bitwise("bit_and", "and")},
      {"bitwise_left_shift", shift("left")},
      {"bitwise_or", bitwise("bit_or", "or")},
      {"bitwise_right_shift", shift("right")},
      {"bitwise_xor", bitwise("bit_xor", "xor")},
      {"clamp", convert_clamp},
      {"clamp_max", convert_clamp},
      {"clamp_min", convert_clamp},
      {"clip", convert_clamp},
      {"div", convert_div},
      {"divide", convert_div},
      {"eq", comparison("equal")},
      {"floor_divide", convert_floor_divide},
      {"fmax", extremum_of_numbers(maximum)},
      {"fmin", extremum_of_numbers(minimum)},
      {"fmod", convert_fmod},
      {"gcd", convert_gcd},
      {"ge", comparison("greater_equal")},
      {"greater", comparison("greater")},
      {"gt", comparison("greater")},
      {"arctan2", convert_atan2},
      {"float_power", convert_float_power},
      {"greater_equal", comparison("greater_equal")},
      {"heaviside", convert_heaviside},
      {"hypot", convert_hypot},
      {"isclose", convert_isclose},
      {"less_equal", comparison("less_equal")},
      {"logaddexp2", convert_logaddexp2},
      {"special_xlog1py", times_logarithm(1)},
      {"special_xlogy", times_logarithm(0)},
      {"xlogy", times_logarithm(0)},
      {"lcm", convert_lcm},
      {"ldexp", convert_ldexp},
      {"le", comparison("less_equal")},
      {"lerp", convert_lerp},
      {"less", comparison("less")},
      {"logaddexp", convert_logaddexp},
      {"logical_and", logical("and")},
      {"logical_or", logical("or")},
      {"logical_xor", logical("xor")},
      {"lt", comparison("less")},
      {"masked_fill", convert_masked_fill},
      {"max.other", extremum("max", "or")},
      {"maximum", extremum("max", "or")},
      {"min.other", extremum("min", "and")},
      {"minimum", extremum("min", "and")},
      {"mul", convert_mul},
      {"multiply", convert_mul},
      {"ne", comparison("equal", true)},
      {"not_equal", comparison("equal", true)},
      {"pow", convert_pow},
      {"remainder", convert_remainder},
      {"rsub", convert_rsub},
      {"sub", convert_sub},
      {"subtract", convert_sub},
      {"true_divide", convert_div},
      {"where.Scalar", convert_where},
      {"where.ScalarOther", convert_where},
      {"where.ScalarSelf", convert_where},
      {"where.self", convert_where},
  };
  return conversions;
}

}  // namespace tenon::torch
