// elements.h — how eval functions walk over elements: broadcasting, strided walks, and elements as they are
// stored.
#pragma once

#include <array>
#include <complex>
#include <limits>

#include "ir/evaluate.h"
#include "tensor/wide.h"

namespace tenon {

// The extents two tensors broadcast to; a user_error naming the op when they do not.
Extents broadcast_extents(std::string_view op, const Extents& a, const Extents& b);

// Strides (in elements) that read a row-major tensor of extents `from` as if it had been broadcast to `to`.
Extents broadcast_strides(const Extents& from, const Extents& to);

// Calls f(offsets) for every element of `extents` in row-major order, where offsets[k] moves by strides[k]
// along each dimension. The innermost dimension is a plain loop.
template <size_t N, class F>
void walk(const Extents& extents, const std::array<Extents, N>& strides, F&& f) {
  const size_t rank = extents.size();
  std::array<int64_t, N> offsets{};
  if (rank == 0)
    return f(offsets);
  for (int64_t extent : extents)
    if (extent == 0)
      return;
  Extents index(rank, 0);
  while (true) {
    std::array<int64_t, N> inner = offsets;
    for (int64_t i = 0; i < extents[rank - 1]; ++i) {
      f(inner);
      for (size_t k = 0; k < N; ++k)
        inner[k] += strides[k][rank - 1];
    }
    // On to the next row: like an odometer.
    size_t axis = rank - 1;
    while (axis-- > 0) {
      for (size_t k = 0; k < N; ++k)
        offsets[k] += strides[k][axis];
      if (++index[axis] < extents[axis])
        break;
      for (size_t k = 0; k < N; ++k)
        offsets[k] -= strides[k][axis] * extents[axis];
      index[axis] = 0;
    }
    if (axis == static_cast<size_t>(-1))
      return;
  }
}

// Calls f with a value of the type that elements of this dtype are stored as, for ops that move elements
// without computing: with_storage(x.dtype(), [&]<class T>(T) { stored<T>(x)[i] … }).
template <class F>
decltype(auto) with_storage(DType dtype, F&& f) {
  switch (info(dtype).bytes) {
    case 0:
      return f(std::string{});
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    case 8:
      return f(uint64_t{});
    default:
      return f(std::complex<double>{});
  }
}

template <class T>
std::span<const T> stored(const Tensor& t) {
  if constexpr (std::is_same_v<T, std::string>)
    return t.strings();
  else
    return t.data<T>();
}
template <class T>
std::span<T> mutable_stored(Tensor& t) {
  if constexpr (std::is_same_v<T, std::string>)
    return t.mutable_strings();
  else
    return t.mutable_data<T>();
}

// The tensor of these extents whose element at index i is x's element at offset + Σ i·stride.
Tensor gather_strided(const Tensor& x, const Extents& extents, const Extents& strides, int64_t offset = 0);
// The same of what is known of x's elements.
std::vector<Dim> gather_strided(const std::vector<Dim>& x, const Extents& extents, const Extents& strides,
                                int64_t offset = 0);

// A vector operand that must hold `count` numbers.
std::vector<int64_t> read_vector(const Call& c, std::string_view name, size_t count);
// An operand that must be one element, and the integer in it, which must be at least `least`.
const Tensor& read_only_element(const Call& c, std::string_view name);
int64_t read_number(const Call& c, std::string_view name,
                    int64_t least = std::numeric_limits<int64_t>::min());

// The values of an operand that must broadcast to `extents`, repeated to them.
std::vector<double> read_broadcast(const Call& c, std::string_view name, const Extents& extents);

// Zeros, or other initial values, to compute a result of these extents in. More than memory could hold is the
// user's fault.
template <class T>
std::vector<T> zeros(const Extents& extents, T initial = T{0}) {
  const int64_t count = element_count(extents);
  if (static_cast<uint64_t>(count) > memory_limit() / sizeof(T))
    throw user_error("a result of shape [{}] is more than this machine's memory can hold",
                     fmt::join(extents, ","));
  return std::vector<T>(static_cast<size_t>(count), initial);
}

// eval of a unary op by its formula on one number: map<[](auto x) { return -x; }>.
template <auto formula>
Data map(const Call& c) {
  const Tensor& x = c.in("x");
  return with_wide(x.dtype(), [&]<class T>(T) -> Data {
    std::vector<T> values = widen<T>(x);
    for (T& value : values)
      value = static_cast<T>(formula(value));
    return {narrow<T>(x.dtype(), x.extents(), values)};
  });
}

// The same for an op on floats only, so that the formula need not make sense for integers; it may be one that
// attributes shape.
template <class Formula>
Data map_floats(const Call& c, Formula&& formula) {
  const Tensor& x = c.in("x");
  std::vector<double> values = widen<double>(x);
  for (double& value : values)
    value = formula(value);
  return {narrow<double>(x.dtype(), x.extents(), values)};
}

template <auto formula>
Data map_floats(const Call& c) {
  return map_floats(c, formula);
}

// `formula` over the elements of a and b, broadcast; the results narrow to `dtype`.
template <class T, class F>
Tensor zip(std::string_view op, const Tensor& a, const Tensor& b, DType dtype, F&& formula) {
  const Extents extents = broadcast_extents(op, a.extents(), b.extents());
  const std::vector<T> x = widen<T>(a), y = widen<T>(b);
  using R = decltype(formula(T{}, T{}));
  std::vector<R> result = zeros<R>(extents);
  auto out = result.begin();
  walk<2>(extents, {broadcast_strides(a.extents(), extents), broadcast_strides(b.extents(), extents)},
          [&](const std::array<int64_t, 2>& at) {
            *out++ = formula(x[static_cast<size_t>(at[0])], y[static_cast<size_t>(at[1])]);
          });
  return narrow<R>(dtype, extents, result);
}

}  // namespace tenon
