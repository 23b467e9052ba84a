// strided_copy.h — tensors whose elements are not contiguous, gathered into memory where they are, and
// scattered from there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tenon::api {

// Strides are counted in elements, and may be 0 or negative.
struct StridedElements {
  std::span<const int64_t> sizes, strides;  // as many of one as of the other
  size_t element_bytes;

  bool is_contiguous() const;
  // From the element at the lowest address to the end of that at the highest; nothing where that cannot be
  // counted.
  std::optional<uint64_t> spanned_bytes() const;
  // Whether all elements have an address of their own, as far as nested blocks tell: strides that interleave
  // elements without one on another's place are taken for overlapping.
  bool is_injective() const;

  void gather(const std::byte* strided, std::byte* contiguous) const;
  void scatter(const std::byte* contiguous, std::byte* strided) const;
};

}  // namespace tenon::api
