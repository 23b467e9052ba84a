// constant.cpp — constants that can meet do, and what can be written with a constant in several ways is
// written in one: to the right, added and multiplied rather than subtracted and divided by. Other rules then
// look for one spelling only.
#include <cmath>

#include "rewrite/rules/rounded_sums.h"
#include "rewrite/rules/rules.h"

namespace tenon {
namespace {

// Whether formula(elements of c …) is a normal number for all elements: then doing it first loses nothing.
bool stays_normal(const Tensor& c, const std::function<double(double)>& formula) {
  const double smallest = c.dtype() == DType::F64 ? 0x1p-1022 : c.dtype() == DType::F16 ? 0x1p-14 : 0x1p-126;
  const double greatest = greatest_finite(c.dtype());
  for (double element : widen<double>(c)) {
    const double magnitude = std::fabs(formula(element));
    if (!(magnitude >= smallest && magnitude <= greatest))
      return false;
  }
  return true;
}

double greatest_magnitude(const Tensor& c) {
  double greatest = 0;
  for (double element : widen<double>(c))
    greatest = std::max(greatest, std::fabs(element));
  return greatest;
}

Condition has_normal_reciprocal(const Pattern& c) {
  return {"1 / " + c.to_string() + " neither overflows nor underflows",
          [=](const Match& m) {
            const Tensor* known = known_elements(m[c]);
            return known != nullptr && stays_normal(*known, [](double element) { return 1 / element; });
          },
          true};
}

// All its elements are powers of two, so that 1 / c is exact.
Condition is_power_of_two(const Pattern& c) {
  return {c.to_string() + " is a power of two", [=](const Match& m) {
            const Tensor* known = known_elements(m[c]);
            return known != nullptr && stays_normal(*known, [](double element) {
                     int exponent = 0;
                     return std::fabs(std::frexp(element, &exponent)) == 0.5 ? 1 / element : 0.0;
                   });
          }};
}

Condition product_is_normal(const Pattern& c, const Pattern& d) {
  return {fmt::format("{} * {} neither overflows nor underflows", c.to_string(), d.to_string()),
          [=](const Match& m) {
            const Tensor *known_c = known_elements(m[c]), *known_d = known_elements(m[d]);
            if (known_c == nullptr || known_d == nullptr)
              return false;
            if (is_integer(m[c].dtype()))
              return true;
            const double greatest = greatest_magnitude(*known_d);
            return stays_normal(*known_d, [](double element) { return element; }) &&
                   stays_normal(*known_c, [=](double element) { return element * greatest; });
          }};
}

Condition sum_keeps_rounding(const Pattern& c, const Pattern& d) {
  return {fmt::format("{} + {} neither overflows nor cancels what is large", c.to_string(), d.to_string()),
          [=](const Match& m) {
            const Tensor *known_c = known_elements(m[c]), *known_d = known_elements(m[d]);
            return known_c != nullptr && known_d != nullptr && sum_keeps_rounding(*known_c, *known_d);
          }};
}

// c alone broadcasts to what c and x together do: then computing with c first costs no more than with x.
Condition does_not_widen(const Pattern& c, const Pattern& sum) {
  return {c.to_string() + " broadcasts to nothing larger", [=](const Match& m) {
            return m[sum].type() == m.root().type() && known_elements(m[c]) != nullptr;
          }};
}

Rule constant_to_the_right(std::string_view name, std::string_view op_name, std::string_view fires,
                           std::string_view stays) {
  const Pattern x = any("x"), c = constant("c");
  return {
      .name = name,
      .match = op(op_name, {{"a", c}, {"b", x}}),
      .replace = op(op_name, {{"a", x}, {"b", c}}),
      .when = {is_not_fixed(x),
               {"c stands to the left", [=](const Match& m) { return m.root().node()->in("a") == m[c]; }}},
      .numerics = Numerics::BitExact,
      .fires = fires,
      .stays = stays};
}

Rules make_rules() {
  const Pattern x = any("x"), y = any("y"), c = constant("c"), d = constant("d");
  const Pattern one = 1.0, minus_one = -1.0;
  const Pattern x_plus_c = (x + c).once(), x_times_c = (x * c).once();
  return {
      constant_to_the_right("constant-addend-right", "add",
                            "(%x: T[n]) { %c = constant(value=T[] {3}) %y = add(%c, %x) return %y }",
                            "(%x: T[n]) { %c = constant(value=T[] {3}) %y = add(%x, %c) return %y }"),
      constant_to_the_right("constant-factor-right", "mul",
                            "(%x: T[n]) { %c = constant(value=T[] {3}) %y = mul(%c, %x) return %y }",
                            "(%x: T[n]) { %c = constant(value=T[] {3}) %y = mul(%x, %c) return %y }"),
      {.name = "subtract-constant",
       .match = x - c,
       .replace = x + -c,
       .when = {is_not_fixed(x), is_small(c), has_ordinary_dtype(c)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {3}) %y = sub(%x, %c) return %y }",
       .stays = "(%x: T[n]) { %c = constant(value=T[] {3}) %y = sub(%c, %x) return %y }"},
      {.name = "divide-by-power-of-two",
       .match = x / c,
       .replace = x * unary("reciprocal", c),
       .when = {is_not_fixed(x), is_ordinary_float(x), is_power_of_two(c)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {8}) %y = div(%x, %c) return %y }",
       .stays = "(%x: T[n]) { %c = constant(value=T[] {3}) %y = div(%x, %c) return %y }"},
      {.name = "divide-by-constant",
       .match = x / c,
       .replace = x * unary("reciprocal", c),
       .when = {is_not_fixed(x), is_ordinary_float(x), has_normal_reciprocal(c)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n,2]) { %c = constant(value=T[2] {3, -7}) %y = div(%x, %c) return %y }",
       .stays = "(%x: T[n,2]) { %c = constant(value=T[2] {3, 0}) %y = div(%x, %c) return %y }"},
      {.name = "one-over",
       .match = one / x,
       .replace = unary("reciprocal", x),
       .when = {is_ordinary_float(x)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n]) { %1 = constant(value=T[] {1}) %y = div(%1, %x) return %y }",
       .stays = "(%x: T[n]) { %1 = constant(value=T[] {2}) %y = div(%1, %x) return %y }"},
      {.name = "multiply-by-reciprocal",
       .match = y * unary("reciprocal", x),
       .replace = y / x,
       .when = {is_not_fixed(x), is_ordinary_float(x)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n], %y: T[m,n]) { %0 = reciprocal(%x) %z = mul(%0, %y) return %z }",
       .stays = "(%y: T[m,2]) { %x = constant(value=T[2] {3, 7}) %0 = reciprocal(%x) %z = mul(%y, %0) "
                "return %z }"},
      {.name = "multiply-by-minus-one",
       .match = x * minus_one,
       .replace = -x,
       .when = {has_ordinary_dtype(x)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {-1}) %y = mul(%x, %c) return %y }",
       .stays = "(%x: T[2]) { %c = constant(value=T[3,2] splat -1) %y = mul(%x, %c) return %y }"},
      {.name = "negate-constant-factor",
       .match = -x_times_c,
       .replace = x * -c,
       .when = {is_small(c), has_ordinary_dtype(c)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {3}) %0 = mul(%x, %c) %y = neg(%0) return %y }",
       .stays = "(%x: T[n]) { %c = constant(value=T[] {3}) %0 = mul(%x, %c) %y = neg(%0) return %y, %0 }"},
      {.name = "multiply-negative-by-constant",
       .match = (-x).once() * c,
       .replace = x * -c,
       .when = {is_not_fixed(x), is_small(c), has_ordinary_dtype(c)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {3}) %0 = neg(%x) %y = mul(%0, %c) return %y }",
       .stays = "(%x: T[n]) { %c = constant(value=T[] {3}) %0 = neg(%x) %y = mul(%0, %c) return %y, %0 }"},
      {.name = "add-constants-integer",
       .match = x_plus_c + d,
       .replace = x + (c + d),
       .when = {is_not_fixed(x), is_integer(c), does_not_widen(c, x_plus_c), is_small(d)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: i32[n]) { %c = constant(value=i32[] {3}) %d = constant(value=i32[] {4}) "
                "%0 = add(%x, %c) %y = add(%d, %0) return %y }",
       .stays = "(%x: i32[n]) { %c = constant(value=i32[] {3}) %d = constant(value=i32[] {4}) "
                "%0 = add(%x, %c) %y = add(%d, %0) return %y, %0 }"},
      {.name = "add-constants",
       .match = x_plus_c + d,
       .replace = x + (c + d),
       .when = {is_not_fixed(x), is_ordinary_float(c), does_not_widen(c, x_plus_c), sum_keeps_rounding(c, d)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {3}) %d = constant(value=T[] {0.1}) "
                "%0 = add(%x, %c) %y = add(%d, %0) return %y }",
       .stays = "(%x: T[n], %a: f32[n]) { %c = constant(value=T[] {3}) %d = constant(value=T[2,1] {4, 5}) "
                "%0 = add(%x, %c) %y = add(%d, %0) %e = constant(value=f32[] {8388608}) "
                "%f = constant(value=f32[] {-8388608}) %1 = add(%a, %e) %z = add(%1, %f) return %y, %z }"},
      {.name = "multiply-constants-integer",
       .match = x_times_c * d,
       .replace = x * (c * d),
       .when = {is_not_fixed(x), is_integer(c), does_not_widen(c, x_times_c), is_small(d)},
       .numerics = Numerics::BitExact,
       .fires = "(%x: i32[n]) { %c = constant(value=i32[] {3}) %d = constant(value=i32[] {4}) "
                "%0 = mul(%x, %c) %y = mul(%d, %0) return %y }",
       .stays = "(%x: i32[n]) { %c = constant(value=i32[] {3}) %d = constant(value=i32[] {4}) "
                "%0 = mul(%x, %c) %y = mul(%d, %0) return %y, %0 }"},
      {.name = "multiply-constants",
       .match = x_times_c * d,
       .replace = x * (c * d),
       .when = {is_not_fixed(x), is_ordinary_float(c), does_not_widen(c, x_times_c), product_is_normal(c, d)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {3}) %d = constant(value=T[] {0.1}) "
                "%0 = mul(%x, %c) %y = mul(%d, %0) return %y }",
       .stays = "(%x: f16[n]) { %c = constant(value=f16[] {0.0001}) %d = constant(value=f16[] {0.0001}) "
                "%0 = mul(%x, %c) %y = mul(%d, %0) return %y }"},
      // So that scalar factors gather at the end of a product, where they meet: (x c) y is (x y) c. Where x
      // is smaller than the product, it is cheaper to multiply it.
      {.name = "constant-factor-outward",
       .match = x_times_c * y,
       .replace = (x * y) * c,
       .when = {is_not_fixed(x),
                is_not_fixed(y),
                is_ordinary_float(c),
                is_one_number(c),
                {"x is as large as the product",
                 [=](const Match& m) { return m[x].type() == m.root().type(); }},
                {"x y does not overflow sooner: c is at least 1, or x is no f16",
                 [=](const Match& m) {
                   return m[x].dtype() != DType::F16 || std::fabs(m.number(c).value_or(0)) >= 1;
                 }}},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[m,n], %y: T[n]) { %c = constant(value=T[] {3}) %0 = mul(%x, %c) %z = mul(%y, %0) "
                "return %z }",
       .stays = "(%x: T[m,n], %y: T[n]) { %c = constant(value=T[] {3}) %0 = mul(%x, %c) %z = mul(%y, %0) "
                "%1 = mul(%y, %c) %2 = mul(%x, %1) return %z, %0, %2 }"},
      // The square is the same number: the double product of two f32, f16 or bf16 is exact before it rounds.
      {.name = "power-of-two",
       .match = op("pow", {{"a", x}, {"b", 2.0}}),
       .replace = x * x,
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {2}) %y = pow(%x, %c) return %y }",
       .stays = "(%x: T[2]) { %c = constant(value=T[3,2] splat 2) %y = pow(%x, %c) return %y }"},
      {.name = "power-of-three",
       .match = op("pow", {{"a", x}, {"b", 3.0}}),
       .replace = (x * x) * x,
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {3}) %y = pow(%x, %c) return %y }",
       .stays = "(%x: T[n]) { %c = constant(value=T[] {2.5}) %y = pow(%x, %c) return %y }"},
      {.name = "power-of-minus-one",
       .match = op("pow", {{"a", x}, {"b", minus_one}}),
       .replace = unary("reciprocal", x),
       .when = {is_ordinary_float(x)},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n]) { %c = constant(value=T[] {-1}) %y = pow(%x, %c) return %y }",
       .stays = "(%x: T[n]) { %c = constant(value=T[] {-2}) %y = pow(%x, %c) return %y }"},
  };
}

}  // namespace

const Rules& constant_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
