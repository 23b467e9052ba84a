#include "verify/compare.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <memory>

#include "ir/type.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

// Same kind, dtype and shape; else what differs.
std::string type_mismatch(const Tensor& actual, const Tensor& expected) {
  if (actual.dtype() == expected.dtype() && actual.extents() == expected.extents())
    return "";
  return fmt::format("got {}, expected {}", type_of(actual), type_of(expected));
}

template <class Part>
std::string complex_text(std::span<const std::byte> element) {
  Part parts[2];
  std::memcpy(parts, element.data(), sizeof parts);
  return fmt::format("{}{:+}i", parts[0], parts[1]);
}

std::string element_text(const Tensor& t, int64_t index) {
  if (t.dtype() == DType::String)
    return t.strings()[static_cast<size_t>(index)];
  const auto size = static_cast<size_t>(t.element_size());
  const std::span<const std::byte> element = t.bytes().subspan(static_cast<size_t>(index) * size, size);
  if (t.dtype() == DType::C64)
    return complex_text<float>(element);
  if (t.dtype() == DType::C128)
    return complex_text<double>(element);
  const Tensor scalar(t.dtype(), {}, std::make_shared<Tensor>(t), element);
  return with_wide(t.dtype(), [&]<class T>(T) { return fmt::format("{}", widen<T>(scalar).front()); });
}

std::string mismatch_at(const Tensor& actual, const Tensor& expected, int64_t index) {
  return fmt::format("element {} of {} is {}, expected {}", index, type_of(expected),
                     element_text(actual, index), element_text(expected, index));
}

// The first element where the bits differ, or -1.
int64_t first_difference(const Tensor& actual, const Tensor& expected) {
  if (identical(actual, expected))
    return -1;
  for (int64_t i = 0; i < expected.count(); ++i) {
    if (expected.dtype() == DType::String) {
      if (actual.strings()[static_cast<size_t>(i)] != expected.strings()[static_cast<size_t>(i)])
        return i;
      continue;
    }
    const auto size = static_cast<size_t>(expected.element_size()), at = static_cast<size_t>(i) * size;
    if (std::memcmp(actual.bytes().data() + at, expected.bytes().data() + at, size) != 0)
      return i;
  }
  return -1;
}

bool same_special(double a, double b) {
  return std::isnan(a) == std::isnan(b) && std::isinf(a) == std::isinf(b) && (!std::isinf(a) || a == b);
}

// The first element of two tensors of one type for which `differ` holds; empty where there is none. What are
// no numbers, or no floats where `of_floats`, differ by their bits.
template <class Differ>
std::string first_mismatch_where(const Tensor& actual, const Tensor& expected, bool of_floats,
                                 const Differ& differ) {
  const DType dtype = expected.dtype();
  if (const std::string detail = type_mismatch(actual, expected); !detail.empty())
    return detail;
  if (identical(actual, expected))
    return "";
  if (dtype == DType::String || kind(dtype) == DTypeKind::Complex || (of_floats && !is_float(dtype)))
    return mismatch_at(actual, expected, first_difference(actual, expected));
  const std::vector<double> a = widen<double>(actual), b = widen<double>(expected);
  for (size_t i = 0; i < b.size(); ++i)
    if (differ(a[i], b[i]))
      return mismatch_at(actual, expected, static_cast<int64_t>(i));
  return "";
}

using TensorMismatch = std::function<std::string(const Tensor& actual, const Tensor& expected)>;

std::string first_mismatch_by(const TensorMismatch& mismatch, const Datum& actual, const Datum& expected) {
  if (actual.index() != expected.index())
    return fmt::format("got {}, expected {}", type_of(actual), type_of(expected));
  if (std::holds_alternative<Tensor>(expected))
    return mismatch(actual.tensor(), expected.tensor());
  if (std::holds_alternative<Optional>(expected)) {
    const auto &a = actual.optional().element, &b = expected.optional().element;
    if (bool(a) != bool(b))
      return fmt::format("got {} optional, expected {}", a ? "a full" : "an empty",
                         b ? "a full one" : "an empty one");
    return a ? first_mismatch_by(mismatch, *a, *b) : "";
  }
  const auto &a = actual.sequence().elements, &b = expected.sequence().elements;
  if (a.size() != b.size())
    return fmt::format("got a sequence of {}, expected one of {}", a.size(), b.size());
  for (size_t i = 0; i < b.size(); ++i)
    if (const std::string detail = first_mismatch_by(mismatch, a[i], b[i]); !detail.empty())
      return fmt::format("in element {} of the sequence: {}", i, detail);
  return "";
}

}  // namespace

Comparison compare(const Tensor& actual, const Tensor& expected, double tolerance) {
  Comparison result;
  result.detail = type_mismatch(actual, expected);
  if (!result.detail.empty())
    return result;
  if (!is_float(expected.dtype())) {
    const int64_t at = first_difference(actual, expected);
    result.agree = at < 0;
    if (at >= 0)
      result.detail = mismatch_at(actual, expected, at);
    return result;
  }
  const std::vector<double> a = widen<double>(actual), b = widen<double>(expected);
  int64_t worst = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    if (!same_special(a[i], b[i])) {
      result.detail = mismatch_at(actual, expected, static_cast<int64_t>(i));
      return result;
    }
    if (!std::isfinite(b[i]))
      continue;
    result.scale = std::max(result.scale, std::fabs(b[i]));
    if (const double error = std::fabs(a[i] - b[i]); error > result.worst_error) {
      result.worst_error = error;
      worst = static_cast<int64_t>(i);
    }
  }
  result.agree = result.worst_error <= tolerance * result.scale;
  result.proves_nothing = !b.empty() && result.scale < kNearlyZero;
  if (!result.agree)
    result.detail =
        fmt::format("{}: off by {:.2g}, more than {:g} of {:.3g}", mismatch_at(actual, expected, worst),
                    result.worst_error, tolerance, result.scale);
  return result;
}

std::string first_mismatch(const Datum& actual, const Datum& expected, double relative, double absolute) {
  const auto is_far = [=](double a, double b) {
    return !same_special(a, b) || (std::isfinite(b) && std::fabs(a - b) > absolute + relative * std::fabs(b));
  };
  return first_mismatch_by(
      [&](const Tensor& a, const Tensor& b) { return first_mismatch_where(a, b, false, is_far); }, actual,
      expected);
}

std::string first_other_bits(const Datum& actual, const Datum& expected) {
  const auto has_other_bits = [](double a, double b) {
    return !(std::isnan(a) && std::isnan(b)) && (a != b || std::signbit(a) != std::signbit(b));
  };
  return first_mismatch_by(
      [&](const Tensor& a, const Tensor& b) { return first_mismatch_where(a, b, true, has_other_bits); },
      actual, expected);
}

}  // namespace tenon
