// arithmetic.h — expressions written as formulas: exp(x - m) / s. Indices and the numbers added to them stay
// indices, so that what can be seen of an address is seen.
#pragma once

#include "loops/scalar.h"

namespace tenon::loops {

// What an expression is as an index: a size, a loop variable, or a whole number.
std::optional<Dim> as_index(const Scalar& scalar);

// A number of that dtype: 0.5 of an integer dtype is our bug.
Scalar constant(DType dtype, double value);

Scalar operator+(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a, const Scalar& b);
Scalar operator*(const Scalar& a, const Scalar& b);
Scalar operator/(const Scalar& a, const Scalar& b);
Scalar operator-(const Scalar& a);
inline Scalar operator+(const Scalar& a, double b) { return a + constant(a.dtype(), b); }
inline Scalar operator-(const Scalar& a, double b) { return a - constant(a.dtype(), b); }
inline Scalar operator*(const Scalar& a, double b) { return a * constant(a.dtype(), b); }
inline Scalar operator/(const Scalar& a, double b) { return a / constant(a.dtype(), b); }
inline Scalar operator+(double a, const Scalar& b) { return constant(b.dtype(), a) + b; }
inline Scalar operator-(double a, const Scalar& b) { return constant(b.dtype(), a) - b; }
inline Scalar operator*(double a, const Scalar& b) { return constant(b.dtype(), a) * b; }
inline Scalar operator/(double a, const Scalar& b) { return constant(b.dtype(), a) / b; }

Scalar minimum(const Scalar& a, const Scalar& b);  // NaN where either is
Scalar maximum(const Scalar& a, const Scalar& b);
Scalar exp(const Scalar& x);
Scalar log(const Scalar& x);
Scalar sqrt(const Scalar& x);
Scalar tanh(const Scalar& x);
Scalar erf(const Scalar& x);
Scalar abs(const Scalar& x);
Scalar floor(const Scalar& x);
Scalar ceil(const Scalar& x);
Scalar round(const Scalar& x);  // halves to even
Scalar power(const Scalar& a, const Scalar& b);

// These give bool.
Scalar equal(const Scalar& a, const Scalar& b);
Scalar less(const Scalar& a, const Scalar& b);
Scalar less_equal(const Scalar& a, const Scalar& b);
Scalar is_nan(const Scalar& x);
Scalar operator&&(const Scalar& a, const Scalar& b);
Scalar operator||(const Scalar& a, const Scalar& b);
Scalar operator!(const Scalar& a);

// Only what is chosen is computed: the other may be an element outside its buffer.
Scalar select(const Scalar& condition, const Scalar& then, const Scalar& otherwise);
// The kernel fails where the condition does not hold.
Scalar require(const Scalar& condition, const Scalar& value);

// 0 ≤ i < size, where that is not known already; nothing where it is.
std::optional<Scalar> within(const Scalar& i, const Dim& size);

}  // namespace tenon::loops
