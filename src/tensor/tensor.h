// tensor.h — a dense tensor in host memory, row-major. Copies share the elements; writing needs sole
// ownership.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "tensor/dtype.h"

namespace tenon {

using Extents = std::vector<int64_t>;  // the sizes of a tensor's dimensions, all known

// The number of elements; an overflow or a negative extent is the user's fault.
int64_t element_count(const Extents& extents);

// As printed: f32[2,3].
std::string describe(DType dtype, const Extents& extents);

// The bytes of memory this machine, or the container we run in, could give us at most.
uint64_t memory_limit();

// Row-major strides, in elements.
Extents row_major_strides(const Extents& extents);

class Tensor {
 public:
  Tensor() : Tensor(DType::F32, {0}) {}
  // Zeros (or empty strings). Asking for more memory than the machine could give is the user's fault.
  Tensor(DType dtype, Extents extents);
  // A view of bytes that `owner` keeps alive: row-major, one element per info(dtype).bytes. Bytes that are
  // not aligned for the element are copied instead. See packing.h for bytes as they stand in files.
  Tensor(DType dtype, Extents extents, std::shared_ptr<const void> owner, std::span<const std::byte> bytes);

  // The extents default to those of a vector; scalar<T>(v) has rank 0. T is int64_t, int32_t, uint8_t,
  // double, float, bool (as uint8_t) … : the C++ type that holds exactly one element, see dtype_of.
  template <class T>
  static Tensor of(std::span<const T> values, Extents extents);
  template <class T>
  static Tensor of(const std::vector<T>& values) {
    return of(std::span<const T>(values), {static_cast<int64_t>(values.size())});
  }
  template <class T>
  static Tensor scalar(T value) {
    return of(std::span<const T>(&value, 1), {});
  }
  static Tensor strings(std::vector<std::string> values, Extents extents);

  DType dtype() const { return dtype_; }
  const Extents& extents() const { return extents_; }
  int64_t rank() const { return static_cast<int64_t>(extents_.size()); }
  int64_t extent(int64_t axis) const { return extents_.at(static_cast<size_t>(axis)); }
  int64_t count() const { return count_; }
  int64_t element_size() const { return info(dtype_).bytes; }  // 0 for strings

  // The same elements under other extents with the same count.
  Tensor reshaped(Extents extents) const;

  std::span<const std::byte> bytes() const;  // not for strings
  std::span<std::byte> mutable_bytes();      // CHECKs that nobody shares them
  const std::vector<std::string>& strings() const;
  std::vector<std::string>& mutable_strings();

  // The elements as T, which must have this dtype's size (uint16_t reads f16 and bf16 bits).
  template <class T>
  std::span<const T> data() const {
    CHECK(sizeof(T) == static_cast<size_t>(element_size()), "{} elements read as {} bytes", dtype_,
          sizeof(T));
    return {reinterpret_cast<const T*>(bytes().data()), static_cast<size_t>(count_)};
  }
  template <class T>
  std::span<T> mutable_data() {
    CHECK(sizeof(T) == static_cast<size_t>(element_size()), "{} elements written as {} bytes", dtype_,
          sizeof(T));
    return {reinterpret_cast<T*>(mutable_bytes().data()), static_cast<size_t>(count_)};
  }

 private:
  DType dtype_;
  Extents extents_;
  int64_t count_;
  std::shared_ptr<const void> owner_;
  std::byte* data_ = nullptr;  // writable only when owner_ is ours and unshared
  bool writable_ = false;
  std::shared_ptr<std::vector<std::string>> strings_;  // when dtype_ is String
};

// Equal dtype, extents and bits (NaN equals the same NaN).
bool identical(const Tensor& a, const Tensor& b);

// A tensor whose elements all equal the only one of `element`.
Tensor repeat(const Tensor& element, const Extents& extents);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<double>() {
  return DType::F64;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::F32;
}
template <>
constexpr DType dtype_of<int64_t>() {
  return DType::I64;
}
template <>
constexpr DType dtype_of<int32_t>() {
  return DType::I32;
}
template <>
constexpr DType dtype_of<int16_t>() {
  return DType::I16;
}
template <>
constexpr DType dtype_of<int8_t>() {
  return DType::I8;
}
template <>
constexpr DType dtype_of<uint64_t>() {
  return DType::U64;
}
template <>
constexpr DType dtype_of<uint32_t>() {
  return DType::U32;
}
template <>
constexpr DType dtype_of<uint16_t>() {
  return DType::U16;
}
template <>
constexpr DType dtype_of<uint8_t>() {
  return DType::U8;
}
template <>
constexpr DType dtype_of<bool>() {
  return DType::Bool;
}

template <class T>
Tensor Tensor::of(std::span<const T> values, Extents extents) {
  Tensor t(dtype_of<T>(), std::move(extents));
  CHECK(static_cast<int64_t>(values.size()) == t.count(), "{} values for {} elements", values.size(),
        t.count());
  std::copy(values.begin(), values.end(), reinterpret_cast<T*>(t.mutable_bytes().data()));
  return t;
}

}  // namespace tenon
