#include "loops/arithmetic.h"

#include <cmath>

#include "base/error.h"

namespace tenon::loops {

std::optional<Dim> as_index(const Scalar& scalar) {
  if (scalar.kind() == Scalar::Kind::Index)
    return scalar.index();
  if (scalar.kind() == Scalar::Kind::Number && scalar.dtype() == DType::I64)
    return Dim(std::get<int64_t>(scalar.value()));
  return std::nullopt;
}

namespace {

Scalar apply(Function function, const Scalar& a) { return Scalar::apply(function, {a}); }
Scalar apply(Function function, const Scalar& a, const Scalar& b) {
  CHECK(a.dtype() == b.dtype(), "{} of {} and {}", info(function).name, a.dtype(), b.dtype());
  return Scalar::apply(function, {a, b});
}

// formula of the two where both are indices, and the result is known.
template <class Formula>
std::optional<Scalar> of_indices(const Scalar& a, const Scalar& b, Formula&& formula) {
  const std::optional<Dim> x = as_index(a), y = as_index(b);
  if (!x || !y)
    return std::nullopt;
  Dim result = formula(*x, *y);
  return result.is_unknown() ? std::nullopt : std::optional(Scalar::index(std::move(result)));
}

bool is_at_least(const Dim& dim, int64_t bound) { return dim.lower_bound().value_or(bound - 1) >= bound; }

}  // namespace

Scalar constant(DType dtype, double value) {
  if (is_float(dtype))
    return Scalar::number(dtype, value);
  CHECK(std::trunc(value) == value, "{} is no {}", value, dtype);
  return is_signed(dtype) ? Scalar::number(dtype, static_cast<int64_t>(value))
                          : Scalar::number(dtype, static_cast<uint64_t>(value));
}

Scalar operator+(const Scalar& a, const Scalar& b) {
  if (const auto index = of_indices(a, b, [](const Dim& x, const Dim& y) { return x + y; }))
    return *index;
  return apply(Function::Add, a, b);
}
Scalar operator-(const Scalar& a, const Scalar& b) {
  if (const auto index = of_indices(a, b, [](const Dim& x, const Dim& y) { return x - y; }))
    return *index;
  return apply(Function::Subtract, a, b);
}
Scalar operator*(const Scalar& a, const Scalar& b) {
  if (const auto index = of_indices(a, b, [](const Dim& x, const Dim& y) { return x * y; }))
    return *index;
  return apply(Function::Multiply, a, b);
}
Scalar operator/(const Scalar& a, const Scalar& b) { return apply(Function::Divide, a, b); }
Scalar operator-(const Scalar& a) { return apply(Function::Negate, a); }

Scalar minimum(const Scalar& a, const Scalar& b) { return apply(Function::Minimum, a, b); }
Scalar maximum(const Scalar& a, const Scalar& b) { return apply(Function::Maximum, a, b); }
Scalar exp(const Scalar& x) { return apply(Function::Exp, x); }
Scalar log(const Scalar& x) { return apply(Function::Log, x); }
Scalar sqrt(const Scalar& x) { return apply(Function::Sqrt, x); }
Scalar tanh(const Scalar& x) { return apply(Function::Tanh, x); }
Scalar erf(const Scalar& x) { return apply(Function::Erf, x); }
Scalar abs(const Scalar& x) { return apply(Function::Absolute, x); }
Scalar floor(const Scalar& x) { return apply(Function::Floor, x); }
Scalar ceil(const Scalar& x) { return apply(Function::Ceil, x); }
Scalar round(const Scalar& x) { return apply(Function::Round, x); }
Scalar power(const Scalar& a, const Scalar& b) { return apply(Function::Power, a, b); }

Scalar equal(const Scalar& a, const Scalar& b) { return apply(Function::Equal, a, b); }
Scalar less(const Scalar& a, const Scalar& b) { return apply(Function::Less, a, b); }
Scalar less_equal(const Scalar& a, const Scalar& b) { return apply(Function::LessEqual, a, b); }
Scalar is_nan(const Scalar& x) { return !equal(x, x); }
Scalar operator&&(const Scalar& a, const Scalar& b) { return apply(Function::And, a, b); }
Scalar operator||(const Scalar& a, const Scalar& b) { return apply(Function::Or, a, b); }
Scalar operator!(const Scalar& a) { return apply(Function::Not, a); }

Scalar select(const Scalar& condition, const Scalar& then, const Scalar& otherwise) {
  return Scalar::apply(Function::Select, {condition, then, otherwise});
}
Scalar require(const Scalar& condition, const Scalar& value) {
  return Scalar::apply(Function::Require, {condition, value});
}

std::optional<Scalar> within(const Scalar& i, const Dim& size) {
  const std::optional<Dim> index = as_index(i);
  std::optional<Scalar> condition;
  if (!index || !is_at_least(*index, 0))
    condition = less_equal(Scalar::number(DType::I64, int64_t{0}), i);
  if (!index || !is_at_least(size - *index, 1)) {
    const Scalar below = less(i, Scalar::index(size));
    condition = condition ? *condition && below : below;
  }
  return condition;
}

}  // namespace tenon::loops
