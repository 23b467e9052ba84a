#include "api/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/error.h"

namespace tenon::api {
namespace {

bool is_empty(std::span<const int64_t> sizes) {
  return std::find(sizes.begin(), sizes.end(), 0) != sizes.end();
}

enum class Direction : bool { Gather, Scatter };

// Walks the elements in row-major order. `Strided` is a constant byte where they are gathered.
template <Direction direction, size_t element_bytes, class Strided, class Contiguous>
class Walk {
 public:
  Walk(const StridedElements& elements, Contiguous* contiguous)
      : elements_(elements), contiguous_(contiguous) {}

  void copy(size_t axis, Strided* strided) {
    if (axis == elements_.sizes.size())
      return copy_run(strided, 1, 1);
    const int64_t size = elements_.sizes[axis], stride = elements_.strides[axis];
    if (axis + 1 == elements_.sizes.size())
      return copy_run(strided, size, stride);
    for (int64_t i = 0; i < size; ++i)
      copy(axis + 1, strided + i * stride * static_cast<int64_t>(element_bytes));
  }

 private:
  void copy_run(Strided* strided, int64_t size, int64_t stride) {
    constexpr auto step = static_cast<int64_t>(element_bytes);
    for (int64_t i = 0; i < size; ++i, contiguous_ += element_bytes)
      if constexpr (direction == Direction::Gather)
        std::memcpy(contiguous_, strided + i * stride * step, element_bytes);
      else
        std::memcpy(strided + i * stride * step, contiguous_, element_bytes);
  }

  const StridedElements& elements_;
  Contiguous* contiguous_;
};

template <Direction direction, class Strided, class Contiguous>
void copy(const StridedElements& elements, Strided* strided, Contiguous* contiguous) {
  if (is_empty(elements.sizes))
    return;
  const auto walk = [&]<size_t bytes>(std::integral_constant<size_t, bytes>) {
    Walk<direction, bytes, Strided, Contiguous>(elements, contiguous).copy(0, strided);
  };
  switch (elements.element_bytes) {
    case 1:
      return walk(std::integral_constant<size_t, 1>());
    case 2:
      return walk(std::integral_constant<size_t, 2>());
    case 4:
      return walk(std::integral_constant<size_t, 4>());
    case 8:
      return walk(std::integral_constant<size_t, 8>());
    case 16:
      return walk(std::integral_constant<size_t, 16>());
    default:
      CHECK(false, "elements of {} bytes", elements.element_bytes);
  }
}

}  // namespace

bool StridedElements::is_contiguous() const {
  if (is_empty(sizes))
    return true;
  int64_t inner = 1;
  for (size_t i = sizes.size(); i-- > 0;) {
    if (sizes[i] != 1 && strides[i] != inner)
      return false;
    inner *= sizes[i];
  }
  return true;
}

std::optional<uint64_t> StridedElements::spanned_bytes() const {
  if (is_empty(sizes))
    return 0;
  int64_t lowest = 0, highest = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach = 0;
    int64_t& end = strides[i] < 0 ? lowest : highest;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) || __builtin_add_overflow(end, reach, &end))
      return std::nullopt;
  }
  int64_t elements = 0, bytes = 0;
  if (__builtin_sub_overflow(highest, lowest, &elements) || __builtin_add_overflow(elements, 1, &elements) ||
      __builtin_mul_overflow(elements, static_cast<int64_t>(element_bytes), &bytes))
    return std::nullopt;
  return static_cast<uint64_t>(bytes);
}

bool StridedElements::is_injective() const {
  if (is_empty(sizes))
    return true;
  std::vector<std::pair<int64_t, int64_t>> steps;  // each dimension's stride and size, innermost first
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] > 1)
      steps.emplace_back(std::abs(strides[i]), sizes[i]);
  std::sort(steps.begin(), steps.end());
  int64_t spanned = 1;  // elements, by the dimensions so far
  for (const auto& [stride, size] : steps) {
    if (stride < spanned)
      return false;
    spanned += (size - 1) * stride;
  }
  return true;
}

void StridedElements::gather(const std::byte* strided, std::byte* contiguous) const {
  copy<Direction::Gather>(*this, strided, contiguous);
}

void StridedElements::scatter(const std::byte* contiguous, std::byte* strided) const {
  copy<Direction::Scatter>(*this, strided, contiguous);
}

}  // namespace tenon::api
