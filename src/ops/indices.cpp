#include "ops/indices.h"

#include "ir/size_condition.h"
#include "ops/elements.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

// The number of elements in a run of dimensions; only asked of tensors that are not empty, so it is exact.
int64_t product(const Extents& extents, int64_t from, int64_t to) {
  return element_count(Extents(extents.begin() + from, extents.begin() + to));
}

}  // namespace

int64_t checked_index(std::string_view op, int64_t index, int64_t size, int64_t axis) {
  if (index < -size || index >= size)
    throw user_error("{}: index {} is out of range for dimension {} of size {}", op, index, axis, size);
  return index < 0 ? index + size : index;
}

Tensor read_places(const Tensor& x, const Places& places) {
  Tensor y(x.dtype(), places.extents);
  with_storage(x.dtype(), [&]<class T>(T) {
    const std::span<const T> from = stored<T>(x);
    auto to = mutable_stored<T>(y).begin();
    for (int64_t offset : places.offsets)
      to = std::copy_n(from.begin() + offset, places.run, to);
  });
  return y;
}

std::optional<Places> known_places(const Node& n, FindPlaces find, int64_t parameter) {
  const auto x = n.in("x").shape().extents(), extents = n.in("indices").shape().extents();
  const auto indices = n.in("indices").known_ints();
  if (!x || !extents || !indices)
    return std::nullopt;
  try {
    return find(n.op().name, *x, Tensor::of(std::span<const int64_t>(*indices), *extents), parameter);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// --- along an axis ---

Places places_along_axis(std::string_view op, const Extents& x, const Tensor& indices, int64_t axis) {
  const auto rank = static_cast<int64_t>(x.size());
  axis = checked_axis(op, axis, rank);
  const int64_t size = x[static_cast<size_t>(axis)];
  std::vector<int64_t> wanted = as_ints(indices);
  for (int64_t& index : wanted)
    index = checked_index(op, index, size, axis);
  Places places = {.extents = x};
  const auto at = places.extents.erase(places.extents.begin() + axis);
  places.extents.insert(at, indices.extents().begin(), indices.extents().end());
  if (element_count(places.extents) == 0)
    return places;
  places.run = product(x, axis + 1, rank);
  const int64_t outer = product(x, 0, axis);
  for (int64_t i = 0; i < outer; ++i)
    for (int64_t index : wanted)
      places.offsets.push_back((i * size + index) * places.run);
  return places;
}

Shape shape_along_axis(const Node& n, int64_t axis) {
  const Value x = n.in("x");
  axis = checked_axis(n.op().name, axis, x.rank());
  std::vector<Dim> dims = x.shape().dims();
  const std::vector<Dim>& indices = n.in("indices").shape().dims();
  dims.insert(dims.erase(dims.begin() + axis), indices.begin(), indices.end());
  return dims;
}

// --- element by element ---

Places places_of_elements(std::string_view op, const Extents& x, const Tensor& indices, int64_t axis) {
  const Extents& extents = indices.extents();
  axis = checked_axis(op, axis, static_cast<int64_t>(x.size()));
  bool fits = extents.size() == x.size();
  for (size_t i = 0; fits && i < x.size(); ++i)
    fits = static_cast<int64_t>(i) == axis || extents[i] <= x[i];
  if (!fits)
    throw user_error("{}: indices of shape [{}] reach beyond x of shape [{}]", op, fmt::join(extents, ","),
                     fmt::join(x, ","));
  Places places = {.extents = extents};
  Extents strides = row_major_strides(x);
  const int64_t stride = std::exchange(strides[static_cast<size_t>(axis)], 0);
  const std::vector<int64_t> wanted = as_ints(indices);
  auto index = wanted.begin();
  walk<1>(extents, {strides}, [&](const std::array<int64_t, 1>& at) {
    places.offsets.push_back(at[0] +
                             stride * checked_index(op, *index++, x[static_cast<size_t>(axis)], axis));
  });
  return places;
}

Shape shape_of_elements(const Node& n, int64_t axis) {
  const Value x = n.in("x"), indices = n.in("indices");
  axis = checked_axis(n.op().name, axis, x.rank());
  if (indices.rank() != x.rank())
    throw operand_error(n, "x and indices must have the same rank");
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i == axis)
      continue;
    assume_at_most(indices.dim(i), x.dim(i));
    if ((x.dim(i) - indices.dim(i)).constant().value_or(0) < 0)
      throw operand_error(n, fmt::format("indices reach beyond x in dimension {}", i));
  }
  return indices.shape();
}

// --- by tuples ---

Places places_of_tuples(std::string_view op, const Extents& x, const Tensor& indices, int64_t batch_dims) {
  const auto rank = static_cast<int64_t>(x.size());
  const int64_t length = indices.rank() == 0 ? 0 : indices.extents().back();
  if (batch_dims < 0 || batch_dims >= indices.rank() || batch_dims > rank || length > rank - batch_dims ||
      !std::equal(x.begin(), x.begin() + batch_dims, indices.extents().begin()))
    throw user_error("{}: indices of shape [{}] with {} batch dimensions cannot index x of shape [{}]", op,
                     fmt::join(indices.extents(), ","), batch_dims, fmt::join(x, ","));
  Places places = {.extents = {indices.extents().begin(), indices.extents().end() - 1}};
  places.extents.insert(places.extents.end(), x.begin() + batch_dims + length, x.end());
  std::vector<int64_t> wanted = as_ints(indices);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int64_t axis = batch_dims + static_cast<int64_t>(i) % length;
    wanted[i] = checked_index(op, wanted[i], x[static_cast<size_t>(axis)], axis);
  }
  if (element_count(places.extents) == 0)
    return places;
  places.run = product(x, batch_dims + length, rank);
  auto index = wanted.begin();
  // Tuples that share the batch dimensions index the same part of x.
  const int64_t batches = product(x, 0, batch_dims);
  const int64_t tuples = product(indices.extents(), batch_dims, indices.rank() - 1);
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t tuple = 0; tuple < tuples; ++tuple) {
      int64_t offset = batch;
      for (int64_t axis = batch_dims; axis < batch_dims + length; ++axis)
        offset = offset * x[static_cast<size_t>(axis)] + *index++;
      places.offsets.push_back(offset * places.run);
    }
  return places;
}

Shape shape_of_tuples(const Node& n, int64_t batch_dims) {
  const Value x = n.in("x"), indices = n.in("indices");
  if (indices.rank() == 0)
    throw operand_error(n, "indices must have at least one dimension, which holds the tuples");
  if (batch_dims < 0 || batch_dims >= indices.rank() || batch_dims > x.rank())
    throw operand_error(n, fmt::format("there are no {} batch dimensions", batch_dims));
  for (int64_t i = 0; i < batch_dims; ++i)
    if (provably_different(x.dim(i), indices.dim(i)))
      throw operand_error(n, fmt::format("batch dimension {} differs", i));
  const std::optional<int64_t> length = indices.dim(-1).constant();
  if (!length)
    return Shape::unranked();
  if (*length > x.rank() - batch_dims)
    throw operand_error(n, fmt::format("tuples of {} index x, which has {} dimensions to index", *length,
                                       x.rank() - batch_dims));
  std::vector<Dim> dims(indices.shape().dims().begin(), indices.shape().dims().end() - 1);
  dims.insert(dims.end(), x.shape().dims().begin() + batch_dims + *length, x.shape().dims().end());
  return dims;
}

}  // namespace tenon
