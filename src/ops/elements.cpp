#include "ops/elements.h"

#include <algorithm>

namespace tenon {

Extents broadcast_extents(std::string_view op, const Extents& a, const Extents& b) {
  Extents result(std::max(a.size(), b.size()));
  for (size_t i = 0; i < result.size(); ++i) {
    // Counted from the end, a missing dimension is 1.
    const int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1)
      throw user_error("{}: the shapes [{}] and [{}] do not broadcast", op, fmt::join(a, ","),
                       fmt::join(b, ","));
    result[result.size() - 1 - i] = x == 1 ? y : x;
  }
  return result;
}

Extents broadcast_strides(const Extents& from, const Extents& to) {
  const Extents own = row_major_strides(from);
  Extents strides(to.size(), 0);
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i] != 1)
      strides[to.size() - from.size() + i] = own[i];
  return strides;
}

std::vector<int64_t> read_vector(const Call& c, std::string_view name, size_t count) {
  const Tensor& vector = c.in(name);
  if (vector.rank() != 1 || vector.count() != static_cast<int64_t>(count))
    throw user_error("{}: {} must be a vector of {} numbers, but is {}", c.node().op().name, name, count,
                     type_of(vector));
  return as_ints(vector);
}

const Tensor& read_only_element(const Call& c, std::string_view name) {
  const Tensor& value = c.in(name);
  if (value.count() != 1)
    throw user_error("{}: {} must be one number, but is {}", c.node().op().name, name, type_of(value));
  return value;
}

int64_t read_number(const Call& c, std::string_view name, int64_t least) {
  const int64_t number = as_int(read_only_element(c, name));
  if (number < least)
    throw user_error("{}: {} is {}, but must be at least {}", c.node().op().name, name, number, least);
  return number;
}

std::vector<double> read_broadcast(const Call& c, std::string_view name, const Extents& extents) {
  const Tensor& x = c.in(name);
  const std::string_view op = c.node().op().name;
  if (broadcast_extents(op, x.extents(), extents) != extents)
    throw user_error("{}: {} has the shape [{}], but [{}] was wanted", op, name, fmt::join(x.extents(), ","),
                     fmt::join(extents, ","));
  return widen<double>(gather_strided(x, extents, broadcast_strides(x.extents(), extents)));
}

Tensor gather_strided(const Tensor& x, const Extents& extents, const Extents& strides, int64_t offset) {
  Tensor y(x.dtype(), extents);
  with_storage(x.dtype(), [&]<class T>(T) {
    const std::span<const T> from = stored<T>(x);
    auto to = mutable_stored<T>(y).begin();
    walk<1>(extents, {strides},
            [&](const std::array<int64_t, 1>& at) { *to++ = from[static_cast<size_t>(offset + at[0])]; });
  });
  return y;
}

std::vector<Dim> gather_strided(const std::vector<Dim>& x, const Extents& extents, const Extents& strides,
                                int64_t offset) {
  std::vector<Dim> y;
  walk<1>(extents, {strides},
          [&](const std::array<int64_t, 1>& at) { y.push_back(x.at(static_cast<size_t>(offset + at[0]))); });
  return y;
}

}  // namespace tenon
