// compare.h — do two results agree? The one definition of it that tests, verification and conformance use.
#pragma once

#include <string>

#include "tensor/datum.h"

namespace tenon {

// Where all expected values are below this, agreeing proves nothing.
constexpr double kNearlyZero = 1e-3;

struct Comparison {
  bool agree = false;
  bool proves_nothing = false;  // the expected values are all nearly zero, so that agreeing is no evidence
  double worst_error = 0;       // max |actual - expected| over finite elements
  double scale = 0;             // max |expected| over finite elements
  std::string detail;           // why they do not agree: what was got and what was expected
};

// Two tensors agree within `tolerance` when their shapes and dtypes are equal, all but floats are exact
// (complex numbers too), NaN and inf stand in the same places, and max |actual - expected| <= tolerance · max
// |expected|.
Comparison compare(const Tensor& actual, const Tensor& expected, double tolerance);

// Element by element: |actual - expected| <= absolute + relative · |expected|, integers included (they may be
// off by a rounding step where `absolute` says so); strings and complex numbers are exact. Empty when so,
// else the first element that is not. Sequences and optionals compare their elements.
std::string first_mismatch(const Datum& actual, const Datum& expected, double relative, double absolute);

// The same for bits: 0 and -0 differ, but one NaN is as good as another.
std::string first_other_bits(const Datum& actual, const Datum& expected);

}  // namespace tenon
