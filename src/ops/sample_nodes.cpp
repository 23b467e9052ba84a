#include "ops/sample_nodes.h"

#include <algorithm>
#include <numeric>

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

constexpr double kNowhere = -4;  // before the first element, beyond the reach of any filter

// The cubic filter (Keys 1981) at a distance up to 1, and from 1 to 2, with the slope that taps_at has.
constexpr double kSlope = -0.75;
Value near_weight(Value d) { return ((kSlope + 2) * d - (kSlope + 3)) * d * d + 1.0; }
Value far_weight(Value d) { return ((d - 5.0) * d + 8.0) * d * kSlope - 4 * kSlope; }

Value both(Value a, Value b) { return a && b ? logical_and(a, b) : a ? a : b; }
Value product(Value a, Value b) { return a && b ? a * b : a ? a : b; }

// x with the channels of each element as a row: [elements of all images, channels].
Value as_table(Value x) {
  std::vector<int64_t> permutation(static_cast<size_t>(x.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::rotate(permutation.begin() + 1, permutation.begin() + 2, permutation.end());
  const Value last = transpose(x, permutation);
  const Value rows = reduce_prod(slice(shape_of(last), 0, 0, -1), {0}, Keep::Dims);
  return reshape(last, concat({rows, size_along(x, 1)}, 0));
}

// A neighbour in the first few dimensions, on the way to one in all.
struct Partial {
  Value row, weight, inside;
};

std::vector<Partial> extended(const std::vector<Partial>& partials, const std::vector<TapNodes>& taps,
                              Value x, int64_t axis) {
  std::vector<Value> indices;
  for (const TapNodes& tap : taps) {
    const DType dtype = tap.index.dtype();
    const Value last = length_along(x, axis, dtype) - 1.0;
    indices.push_back(cast(clip(tap.index, scalar(x.graph(), dtype, 0), last), DType::I64));
  }
  std::vector<Partial> result;
  for (const Partial& partial : partials) {
    const Value first = partial.row * length_along(x, axis, DType::I64);
    for (size_t i = 0; i < taps.size(); ++i)
      result.push_back({first + indices[i], product(partial.weight, taps[i].weight),
                        both(partial.inside, taps[i].inside)});
  }
  return result;
}

Value beside_channels(Value x) { return x ? unsqueeze(x, {-1}) : x; }

}  // namespace

std::vector<TapNodes> taps_near(Value position, Filter filter) {
  if (filter == Filter::Nearest)
    return {{.index = round(position), .weight = {}, .inside = {}}};
  const Value base = floor(position), ratio = position - base;
  const auto tap = [&](double step, Value weight) {
    return TapNodes{.index = step == 0 ? base : base + step, .weight = weight, .inside = {}};
  };
  if (filter == Filter::Linear)
    return {tap(0, 1.0 - ratio), tap(1, ratio)};
  return {tap(-1, far_weight(1.0 + ratio)), tap(0, near_weight(ratio)), tap(1, near_weight(1.0 - ratio)),
          tap(2, far_weight(2.0 - ratio))};
}

std::vector<TapNodes> taps_among(Value position, Value near, Filter filter, Value x, int64_t axis) {
  const auto number = [&](double value) { return scalar(x.graph(), position.dtype(), value); };
  std::vector<TapNodes> taps = taps_near(where(near, position, number(kNowhere)), filter);
  for (TapNodes& tap : taps)
    tap.inside = is_between(tap.index, number(0), length_along(x, axis, position.dtype()) - 1.0);
  return taps;
}

std::vector<NeighbourNodes> neighbours_in(Value x, Value image,
                                          const std::vector<std::vector<TapNodes>>& taps) {
  std::vector<Partial> partials = {{.row = image, .weight = {}, .inside = {}}};
  for (size_t i = 0; i < taps.size(); ++i)
    partials = extended(partials, taps[i], x, static_cast<int64_t>(i) + 2);
  const Value table = as_table(x);
  std::vector<NeighbourNodes> neighbours;
  for (const Partial& partial : partials)
    neighbours.push_back({.element = gather(table, partial.row, 0),
                          .weight = beside_channels(partial.weight),
                          .inside = beside_channels(partial.inside)});
  return neighbours;
}

Value blend(const std::vector<NeighbourNodes>& neighbours) {
  Value sum;
  for (const auto& [element, weight, inside] : neighbours) {
    const DType dtype = element.dtype();
    // A zero in place of what lies outside, not a weight of zero: the nearest element may be infinite.
    Value term = inside ? where(inside, element, constant(element.graph(), Tensor(dtype, {}))) : element;
    if (weight)
      term = in_dtype(weight, working_dtype(dtype)) * in_dtype(term, working_dtype(dtype));
    sum = sum ? sum + term : term;
  }
  return sum;
}

Value with_channels_at(Value x, int64_t axis) {
  std::vector<int64_t> permutation(static_cast<size_t>(x.rank()));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::rotate(permutation.begin() + axis, permutation.end() - 1, permutation.end());
  return transpose(x, permutation);
}

void check_ranks_known(const Node& n) {
  for (Value operand : n.operands())
    if (!operand.shape().ranked())
      throw unsupported("{}: the rank of an operand is dynamic", n.op().name);
}

DType working_dtype(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

Value length_along(Value x, int64_t axis, DType dtype) {
  if (const auto size = x.dim(axis).constant())
    return scalar(x.graph(), dtype, static_cast<double>(*size));
  return in_dtype(squeeze(size_along(x, axis), {0}), dtype);
}

Value count_along_axis(Value count, int64_t axis, int64_t rank, DType dtype) {
  const auto number = [&](int64_t value) { return constant(count.graph(), Tensor::scalar(value)); };
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = -1;
  return in_dtype(reshape(range(number(0), squeeze(count, {0}), number(1)), shape), dtype);
}

Value is_between(Value x, Value least, Value most) {
  return logical_and(greater_equal(x, least), less_equal(x, most));
}

}  // namespace tenon
