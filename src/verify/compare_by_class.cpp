// compare_by_class.cpp — how close is close enough for a class of numerics?
#include <cmath>

#include "tensor/rounding.h"
#include "tensor/wide.h"
#include "verify/compare.h"
#include "verify/rewrite_checks.h"
#include "verify/tolerances.h"

namespace tenon {
namespace {

double tolerance_of(Numerics numerics, DType dtype, double tolerance) {
  const DType rounded_to = numerics == Numerics::ChangesPrecision ? DType::BF16 : dtype;
  return std::max(tolerance, kRoundingSteps * rounding_step(rounded_to));
}

Check failed(double error, std::string detail) {
  return {.verdict = Verdict::Failed, .error = error, .detail = std::move(detail)};
}

Check passed_unless(const std::string& mismatch) {
  return mismatch.empty() ? Check{.verdict = Verdict::Passed} : failed(0, mismatch);
}

// Where bits differ, the error says by how much the numbers do.
Check compare_bits(const Datum& actual, const Datum& expected) {
  Check check = passed_unless(first_other_bits(actual, expected));
  if (check.verdict == Verdict::Failed && std::holds_alternative<Tensor>(actual) &&
      std::holds_alternative<Tensor>(expected)) {
    const Comparison comparison = compare(actual.tensor(), expected.tensor(), 0);
    check.error = comparison.scale > 0 ? comparison.worst_error / comparison.scale : comparison.worst_error;
  }
  return check;
}

// An integer of few bits is a quantised number, which rounding may move by one step.
Check compare_integers(const Tensor& actual, const Tensor& expected) {
  const double steps = is_integer(expected.dtype()) && info(expected.dtype()).bits <= 8 ? 1 : 0;
  return passed_unless(first_mismatch(actual, expected, 0, steps));
}

// What was not finite may have become so.
Check compare_where_finite(const Tensor& actual, const Tensor& expected, double tolerance) {
  const std::vector<double> a = widen<double>(actual), b = widen<double>(expected);
  double scale = 0, worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(b[i]))
      continue;
    scale = std::max(scale, std::fabs(b[i]));
    const double error = std::isfinite(a[i]) ? std::fabs(a[i] - b[i]) : INFINITY;
    if (error > worst) {
      worst = error;
      at = i;
    }
  }
  if (scale < kNearlyZero && worst < kNearlyZero)
    return {.verdict = a.empty() ? Verdict::Passed : Verdict::Unknown};
  if (worst > tolerance * scale)
    return failed(worst / scale,
                  fmt::format("element {} of {} is {}, expected {}: off by {:.2g}, more than {:g} of {:.3g}",
                              at, type_of(expected), a[at], b[at], worst, tolerance, scale));
  return {.verdict = Verdict::Passed, .error = worst / scale};
}

}  // namespace

Check compare_by_class(const Datum& actual, const Datum& expected, Numerics numerics, double tolerance) {
  if (numerics == Numerics::BitExact)
    return compare_bits(actual, expected);
  if (!std::holds_alternative<Tensor>(actual) || !std::holds_alternative<Tensor>(expected))
    return passed_unless(first_mismatch(actual, expected, tolerance, 0));
  const Tensor &a = actual.tensor(), &b = expected.tensor();
  if (a.dtype() != b.dtype() || a.extents() != b.extents())
    return failed(0, fmt::format("got {}, expected {}", type_of(a), type_of(b)));
  if (b.dtype() == DType::String || kind(b.dtype()) == DTypeKind::Complex)
    return compare_bits(a, b);
  return is_float(b.dtype()) ? compare_where_finite(a, b, tolerance_of(numerics, b.dtype(), tolerance))
                             : compare_integers(a, b);
}

}  // namespace tenon
