// select.cpp — PyTorch's ops that take or replace parts of a tensor along an axis.
#include "ops/select.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/signal.h"
#include "ops/slice.h"

namespace tenon::torch {
namespace {

// --- one element of an axis

std::vector<Value> convert_select(const NodeView& n) {
  const Value x = n.tensor("self");
  return {gather(x, n.as_number(n.size("index")), n.axis("dim", n.rank_of(x)))};
}

// The axis as the first one, and back.
std::vector<int64_t> to_front(int64_t rank, int64_t axis) {
  std::vector<int64_t> permutation = {axis};
  for (int64_t each = 0; each < rank; ++each)
    if (each != axis)
      permutation.push_back(each);
  return permutation;
}
std::vector<int64_t> from_front(int64_t rank, int64_t axis) {
  std::vector<int64_t> permutation = axes_between(1, rank);
  permutation.insert(permutation.begin() + axis, 0);
  return permutation;
}
Value moved(Value x, const std::vector<int64_t>& permutation) {
  return x.rank() < 2 ? x : transpose(x, permutation);
}

// x, but with `updates` at the places that indices (i64[k]) name along an axis.
Value put_along(Value x, Value indices, Value updates, int64_t axis) {
  const Value front = moved(x, to_front(x.rank(), axis));
  const Value put = scatter_nd(front, unsqueeze(indices, {1}), moved(updates, to_front(x.rank(), axis)));
  return moved(put, from_front(x.rank(), axis));
}

Value with_selected(const NodeView& n, Value x, Value updated) {
  const int64_t axis = n.axis("dim", n.rank_of(x));
  const Value index = reshape(n.as_number(n.size("index")), {1});
  return put_along(x, index, unsqueeze(in_dtype(updated, x.dtype()), {axis}), axis);
}
std::vector<Value> convert_select_scatter(const NodeView& n) {
  return {with_selected(n, n.tensor("self"), n.tensor("src"))};
}

// --- some elements of an axis

struct Bounds {
  Size start, end;
  int64_t step;
  int64_t axis;
};
Bounds bounds_of(const NodeView& n, Value x) {
  return {n.size("start", int64_t{0}), n.size("end", kToTheEnd), n.integer("step", 1),
          n.axis("dim", n.rank_of(x), 0)};
}

Value sliced(const NodeView& n, Value x, const Bounds& bounds) {
  if (bounds.start == Size(int64_t{0}) && bounds.end == Size(kToTheEnd) && bounds.step == 1)
    return x;
  const Value steps = bounds.step == 1 ? Value() : int_vector(n.graph(), {bounds.step});
  return slice(x, n.vector({bounds.start}), n.vector({bounds.end}), {bounds.axis}, steps);
}

std::vector<Value> convert_slice(const NodeView& n) {
  return {sliced(n, n.tensor("self"), bounds_of(n, n.tensor("self")))};
}

// The elements that a slice names are the same slice of all numbers there are.
Value with_slice(const NodeView& n, Value x, Value updated) {
  const Bounds bounds = bounds_of(n, x);
  if (bounds.start == Size(int64_t{0}) && bounds.end == Size(kToTheEnd) && bounds.step == 1)
    return in_dtype(updated, x.dtype());
  const auto number = [&](int64_t value) { return constant(n.graph(), Tensor::scalar(value)); };
  const Value size = reshape(size_along(x, bounds.axis), std::vector<int64_t>{});
  const Value all = range(number(0), size, number(1));
  Bounds along = bounds;
  along.axis = 0;
  return put_along(x, sliced(n, all, along), in_dtype(updated, x.dtype()), bounds.axis);
}
std::vector<Value> convert_slice_scatter(const NodeView& n) {
  const Value x = n.tensor("self");
  // A source may broadcast to the slice.
  const Value part = sliced(n, x, bounds_of(n, x)), source = n.tensor("src");
  return {with_slice(n, x, source.shape() == part.shape() ? source : broadcast_to(source, shape_of(part)))};
}

std::vector<Value> convert_narrow(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t axis = n.axis("dim", n.rank_of(x));
  const Size start = n.size("start"), length = n.size("length");
  const Value first = n.vector({start});
  return {slice(x, first, first + n.vector({length}), {axis})};
}

// --- windows

// Windows along an axis: their elements are a new, last dimension.
std::vector<Value> convert_unfold(const NodeView& n) {
  Value x = n.tensor("self");
  if (n.rank_of(x) == 0) {
    n.ignore_all();
    return {reshape(x, {1})};
  }
  const int64_t rank = n.rank_of(x), axis = n.axis("dimension", rank);
  const auto number = [&](std::string_view name) {
    return constant(n.graph(), Tensor::scalar(n.integer(name)));
  };
  const Value windows = frames(x, number("size"), number("step"), axis);
  std::vector<int64_t> permutation = axes_between(0, rank + 1);
  permutation.erase(permutation.begin() + axis + 1);
  permutation.push_back(axis + 1);
  return {transpose(windows, permutation)};
}

// --- triangles and diagonals

Convert triangle(bool upper) {
  return [upper](const NodeView& n) {
    const Value x = n.tensor("self");
    const int64_t diagonal = n.integer("diagonal", 0);
    return std::vector<Value>{upper ? upper_triangle(x, diagonal) : lower_triangle(x, diagonal)};
  };
}

// The diagonal of two dimensions as elements of the two flattened into one, which comes last.
struct Diagonal {
  std::vector<int64_t> order, shape, places;

  Diagonal(const NodeView& n, Value x) {
    const int64_t rank = n.rank_of(x);
    if (rank < 2)
      throw user_error("{}: {} has no diagonal", n.op(), x.type());
    const int64_t first = n.axis("dim1", rank, 0), second = n.axis("dim2", rank, 1),
                  offset = n.integer("offset", 0);
    const auto rows = x.dim(first).constant(), columns = x.dim(second).constant();
    if (!rows || !columns || first == second)
      throw unsupported("{}: of {}, whose size is dynamic", n.op(), x.type());
    for (int64_t axis = 0; axis < rank; ++axis)
      if (axis != first && axis != second)
        order.push_back(axis);
    order.push_back(first);
    order.push_back(second);
    shape.assign(static_cast<size_t>(rank - 2), 0);
    shape.push_back(*rows * *columns);
    for (int64_t row = std::max<int64_t>(0, -offset); row < *rows && row + offset < *columns; ++row)
      places.push_back(row * *columns + row + offset);
  }
  int64_t axis() const { return static_cast<int64_t>(shape.size()) - 1; }
  Value in_order(Value x) const { return transpose(x, order); }
  Value flattened(Value x) const { return reshape_copying(in_order(x), shape); }
};

std::vector<Value> convert_diagonal(const NodeView& n) {
  const Value x = n.tensor("self");
  const Diagonal diagonal(n, x);
  return {gather(diagonal.flattened(x), int_vector(n.graph(), diagonal.places), diagonal.axis())};
}

Value with_diagonal(const NodeView& n, Value x, Value updated) {
  const Diagonal diagonal(n, x);
  const Value put = put_along(diagonal.flattened(x), int_vector(n.graph(), diagonal.places),
                              in_dtype(updated, x.dtype()), diagonal.axis());
  std::vector<int64_t> back(diagonal.order.size());
  for (size_t i = 0; i < back.size(); ++i)
    back[static_cast<size_t>(diagonal.order[i])] = static_cast<int64_t>(i);
  return transpose(reshape(put, shape_of(diagonal.in_order(x))), back);
}
std::vector<Value> convert_diagonal_scatter(const NodeView& n) {
  return {with_diagonal(n, n.tensor("self"), n.tensor("src"))};
}

}  // namespace

const Conversions& select_conversions() {
  static const Conversions conversions = {
      {"diagonal", convert_diagonal, Sharing::View, with_diagonal},
      {"diagonal_copy", convert_diagonal},
      {"diagonal_scatter", convert_diagonal_scatter},
      {"narrow", convert_narrow, Sharing::View},
      {"narrow_copy", convert_narrow},
      {"select", convert_select, Sharing::View, with_selected},
      {"select_copy", convert_select},
      {"select_scatter", convert_select_scatter},
      {"slice", convert_slice, Sharing::View, with_slice},
      {"slice_copy", convert_slice},
      {"slice_scatter", convert_slice_scatter},
      {"tril", triangle(false)},
      {"triu", triangle(true)},
      {"unfold", convert_unfold, Sharing::View},
      {"unfold_copy", convert_unfold},
  };
  return conversions;
}

}  // namespace tenon::torch
