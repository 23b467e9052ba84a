// join.cpp — PyTorch's ops that put tensors together, take them apart, and repeat or shift their elements.
#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"

namespace tenon::torch {
namespace {

std::vector<Value> promoted(const NodeView& n, std::string_view name) {
  std::vector<Value> parts = n.tensors(name);
  if (parts.empty())
    throw user_error("{}: it needs at least one tensor", n.op());
  const DType dtype = result_type(std::vector<Term>(parts.begin(), parts.end()));
  for (Value& part : parts)
    part = in_dtype(part, dtype);
  return parts;
}

// Empty vectors go with tensors of any rank, for the sake of old programs.
std::vector<Value> convert_cat(const NodeView& n) {
  std::vector<Value> parts = promoted(n, "tensors");
  int64_t rank = 0;
  for (Value part : parts)
    rank = std::max(rank, n.rank_of(part));
  if (rank > 1)
    std::erase_if(parts, [](Value part) { return part.rank() == 1 && part.dim(0) == Dim(0); });
  const int64_t axis = n.axis("dim", rank, 0);
  return {parts.size() == 1 ? parts.front() : concat(parts, axis)};
}

std::vector<Value> convert_stack(const NodeView& n) {
  std::vector<Value> parts = promoted(n, "tensors");
  const int64_t axis = n.axis("dim", n.rank_of(parts.front()) + 1, 0);
  for (Value& part : parts)
    part = unsqueeze(part, {axis});
  return {parts.size() == 1 ? parts.front() : concat(parts, axis)};
}

std::vector<Value> convert_broadcast_tensors(const NodeView& n) {
  std::vector<Value> tensors = n.tensors("tensors");
  const std::vector<Value> given = tensors;
  for (Value& tensor : tensors)
    for (Value other : given)
      if (tensor.shape() != other.shape())
        tensor = broadcast_to(tensor, shape_of(other));
  return tensors;
}

// With dimensions of size 1, until there are as many: those of PyTorch's atleast_1d, _2d and _3d.
Value at_least(const NodeView& n, Value x, int64_t rank) {
  if (n.rank_of(x) == 0)
    return reshape(x, std::vector<int64_t>(static_cast<size_t>(rank), 1));
  if (x.rank() == 1 && rank > 1)
    return unsqueeze(x, rank == 2 ? std::vector<int64_t>{0} : std::vector<int64_t>{0, 2});
  return x.rank() == 2 && rank == 3 ? unsqueeze(x, {2}) : x;
}
Convert at_least(int64_t rank) {
  return [rank](const NodeView& n) { return std::vector<Value>{at_least(n, n.tensor("self"), rank)}; };
}

// Joined along one of the first axes, once there are enough of them.
Convert stacked_along(int64_t axis, int64_t rank) {
  return [=](const NodeView& n) {
    std::vector<Value> parts = promoted(n, "tensors");
    for (Value& part : parts)
      part = at_least(n, part, rank);
    const int64_t along = std::min(axis, parts.front().rank() - 1);
    return std::vector<Value>{parts.size() == 1 ? parts.front() : concat(parts, along)};
  };
}
// Vectors as the columns of a matrix.
std::vector<Value> convert_column_stack(const NodeView& n) {
  std::vector<Value> parts = promoted(n, "tensors");
  for (Value& part : parts)
    part = n.rank_of(part) < 2 ? reshape(part, {-1, 1}) : part;
  return {parts.size() == 1 ? parts.front() : concat(parts, 1)};
}

// --- parts

std::vector<Value> parts_of(Value x, const std::vector<int64_t>& sizes, int64_t axis) {
  return sizes.size() == 1 ? std::vector<Value>{x} : split(x, sizes, axis);
}

int64_t known_size(const NodeView& n, Value x, int64_t axis) {
  const auto size = x.dim(axis).constant();
  if (!size)
    throw unsupported("{}: the size of {} along axis {} is only known when it runs", n.op(), x.type(), axis);
  return *size;
}

// Parts of `each` elements; the last may have fewer.
std::vector<int64_t> equal_parts(int64_t size, int64_t each) {
  std::vector<int64_t> sizes;
  for (int64_t rest = size; rest > 0; rest -= each)
    sizes.push_back(std::min(rest, each));
  return sizes.empty() ? std::vector<int64_t>{0} : sizes;
}

std::vector<Value> convert_split(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t axis = n.axis("dim", n.rank_of(x), 0), each = n.integer("split_size");
  if (each < 1)
    throw user_error("split: split_size is {}", each);
  return parts_of(x, equal_parts(known_size(n, x, axis), each), axis);
}

std::vector<Value> split_into(const NodeView& n, std::string_view sizes) {
  const Value x = n.tensor("self");
  const int64_t axis = n.axis("dim", n.rank_of(x), 0);
  const std::vector<Size> given = n.sizes(sizes);
  if (given.size() == 1)
    return {x};
  return split(x, n.vector(given), axis);
}
std::vector<Value> convert_split_with_sizes(const NodeView& n) { return split_into(n, "split_sizes"); }
std::vector<Value> convert_split_sizes(const NodeView& n) { return split_into(n, "split_size"); }

std::vector<Value> convert_chunk(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t axis = n.axis("dim", n.rank_of(x), 0), chunks = n.integer("chunks");
  if (chunks < 1)
    throw user_error("chunk: chunks is {}", chunks);
  const int64_t size = known_size(n, x, axis);
  return parts_of(x, equal_parts(size, std::max<int64_t>((size + chunks - 1) / chunks, 1)), axis);
}

std::vector<Value> convert_tensor_split(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t axis = n.axis("dim", n.rank_of(x), 0), size = known_size(n, x, axis),
                sections = n.integer("sections");
  if (sections < 1)
    throw user_error("tensor_split: sections is {}", sections);
  std::vector<int64_t> sizes(static_cast<size_t>(sections), size / sections);
  for (int64_t i = 0; i < size % sections; ++i)
    ++sizes[static_cast<size_t>(i)];
  return parts_of(x, sizes, axis);
}

std::vector<Value> convert_unbind(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t axis = n.axis("dim", n.rank_of(x), 0), size = known_size(n, x, axis);
  std::vector<Value> parts = parts_of(x, std::vector<int64_t>(static_cast<size_t>(size), 1), axis);
  for (Value& part : parts)
    part = squeeze(part, {axis});
  return parts;
}

// Each vector along an axis of its own, repeated along those of the others; by "xy" the first two change
// places.
std::vector<Value> convert_meshgrid(const NodeView& n) {
  std::vector<Value> parts = promoted(n, "tensors");
  const std::string indexing = n.text("indexing", "ij");
  if (indexing != "ij" && indexing != "xy")
    throw user_error("meshgrid: indexing is \"{}\", but must be ij or xy", indexing);
  const auto count = static_cast<int64_t>(parts.size());
  std::vector<Value> lines;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t axis = indexing == "xy" && count > 1 && i < 2 ? 1 - i : i;
    std::vector<int64_t> shape(static_cast<size_t>(count), 1);
    shape[static_cast<size_t>(axis)] = -1;
    lines.push_back(reshape(parts[static_cast<size_t>(i)], shape));
  }
  std::vector<Value> grids = lines;
  for (Value& grid : grids)
    for (Value line : lines)
      grid = broadcast_to(grid, shape_of(line));
  return grids;
}

// --- repetitions

Value tiled(const NodeView& n, Value x, std::vector<Size> repeats) {
  while (static_cast<int64_t>(repeats.size()) < n.rank_of(x))
    repeats.insert(repeats.begin(), int64_t{1});
  const auto more = static_cast<int64_t>(repeats.size()) - x.rank();
  if (more > 0)
    x = unsqueeze(x, axes_between(0, more));
  return repeats.empty() ? x : tile(x, n.vector(repeats));
}
std::vector<Value> convert_repeat(const NodeView& n) {
  return {tiled(n, n.tensor("self"), n.sizes("repeats"))};
}
std::vector<Value> convert_tile(const NodeView& n) { return {tiled(n, n.tensor("self"), n.sizes("dims"))}; }

// Each element `repeats` times in a row.
std::vector<Value> convert_repeat_interleave(const NodeView& n) {
  Value x = n.tensor("self");
  const int64_t repeats = n.integer("repeats");
  n.ignore("output_size");
  if (!n.has("dim"))
    x = reshape(x, {-1});
  const int64_t axis = n.axis("dim", n.rank_of(x), 0), size = known_size(n, x, axis);
  std::vector<int64_t> times(static_cast<size_t>(x.rank() + 1), 1);
  times[static_cast<size_t>(axis + 1)] = repeats;
  const Value wide = tile(unsqueeze(x, {axis + 1}), int_vector(n.graph(), times));
  std::vector<Size> sizes;
  for (int64_t each = 0; each < x.rank(); ++each)
    sizes.push_back(each == axis                ? Size(size * repeats)
                    : x.dim(each).is_constant() ? Size(*x.dim(each).constant())
                                                : Size(reshape(size_along(x, each), std::vector<int64_t>{})));
  return {reshape(wide, n.vector(sizes))};
}

// --- orders

std::vector<Value> convert_flip(const NodeView& n) {
  Value x = n.tensor("self");
  constexpr int64_t before_all = std::numeric_limits<int64_t>::min();
  for (int64_t axis : n.integers("dims"))
    x = slice(x, checked_axis("flip", axis, n.rank_of(x)), -1, before_all, -1);
  return {x};
}

Convert flipped_along(int64_t axis) {
  return [axis](const NodeView& n) {
    constexpr int64_t before_all = std::numeric_limits<int64_t>::min();
    return std::vector<Value>{slice(n.tensor("self"), axis, -1, before_all, -1)};
  };
}

Value rolled(const NodeView& n, Value x, int64_t shift, int64_t axis) {
  const int64_t size = known_size(n, x, axis);
  if (size == 0 || shift % size == 0)
    return x;
  const int64_t first = size - (shift % size + size) % size;
  return concat({slice(x, axis, first, kToTheEnd), slice(x, axis, 0, first)}, axis);
}

std::vector<Value> convert_roll(const NodeView& n) {
  Value x = n.tensor("self");
  const std::vector<int64_t> shifts = n.integers("shifts"), axes = n.integers("dims", {});
  if (axes.empty() && shifts.size() == 1)
    return {reshape(rolled(n, reshape(x, {-1}), shifts.front(), 0), shape_of(x))};
  if (axes.size() != shifts.size())
    throw user_error("roll: {} shifts for {} axes", shifts.size(), axes.size());
  for (size_t i = 0; i < axes.size(); ++i)
    x = rolled(n, x, shifts[i], checked_axis("roll", axes[i], n.rank_of(x)));
  return {x};
}

// --- borders

// Pads come from the last dimension to the first, each before and after.
std::vector<Value> padded(const NodeView& n, std::string_view mode, Value value) {
  const Value x = n.tensor("self");
  const std::vector<Size> pads = n.sizes(n.has("pad") ? "pad" : "padding");
  const auto count = static_cast<int64_t>(pads.size() / 2);
  if (pads.size() % 2 != 0 || count > n.rank_of(x))
    throw user_error("{}: {} pads for {}", n.op(), pads.size(), x.type());
  std::vector<Size> ordered(pads.size());
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    ordered[static_cast<size_t>(count) - 1 - i] = pads[2 * i];
    ordered[pads.size() - 1 - i] = pads[2 * i + 1];
  }
  if (pads.empty())
    return {x};
  const auto pad = [&](Value padded, const std::vector<Size>& by) {
    return n.make_one("pad", {{"x", padded}, {"pads", n.vector(by)}, {"value", value}},
                      {{"axes", axes_between(x.rank() - count, x.rank())}, {"mode", mode}});
  };
  // PyTorch takes elements beyond the borders from all of x, also where other borders are cut off.
  std::vector<Size> added = ordered, cut(ordered.size(), int64_t{0});
  for (size_t i = 0; i < ordered.size(); ++i)
    if (const auto* known = std::get_if<int64_t>(&ordered[i]); known != nullptr && *known < 0)
      std::swap(added[i], cut[i]);
  const bool cuts = std::ranges::any_of(cut, [](const Size& size) { return size != Size(int64_t{0}); });
  return {cuts && mode != "constant" ? pad(pad(x, added), cut) : pad(x, ordered)};
}

Value fill_value(const NodeView& n) {
  return n.has("value") ? as_value(n.graph(), n.term("value"), n.tensor("self").dtype()) : Value();
}

std::vector<Value> convert_pad(const NodeView& n) {
  const std::string mode = n.text("mode", "constant");
  constexpr std::pair<std::string_view, std::string_view> modes[] = {
      {"constant", "constant"}, {"reflect", "reflect"}, {"replicate", "edge"}, {"circular", "wrap"}};
  const auto found = std::ranges::find(modes, mode, &std::pair<std::string_view, std::string_view>::first);
  if (found == std::end(modes))
    throw user_error("pad: mode is \"{}\", but must be constant, reflect, replicate or circular", mode);
  return padded(n, found->second, mode == "constant" ? fill_value(n) : Value());
}
std::vector<Value> convert_constant_pad(const NodeView& n) { return padded(n, "constant", fill_value(n)); }
Convert pad_by(std::string_view mode) {
  return [mode](const NodeView& n) { return padded(n, mode, {}); };
}

}  // namespace

const Conversions& join_conversions() {
  static const Conversions conversions = {
      {"broadcast_tensors", convert_broadcast_tensors},
      {"atleast_1d.default", at_least(1)},
      {"atleast_2d.default", at_least(2)},
      {"atleast_3d.default", at_least(3)},
      {"cat", convert_cat},
      {"column_stack", convert_column_stack},
      {"dstack", stacked_along(2, 3)},
      {"fliplr", flipped_along(1)},
      {"flipud", flipped_along(0)},
      {"hstack", stacked_along(1, 1)},
      {"row_stack", stacked_along(0, 2)},
      {"vstack", stacked_along(0, 2)},
      {"chunk", convert_chunk, Sharing::View},
      {"concat", convert_cat},
      {"concatenate", convert_cat},
      {"constant_pad_nd", convert_constant_pad},
      {"flip", convert_flip},
      {"meshgrid", convert_meshgrid},
      {"pad", convert_pad},
      {"reflection_pad1d", pad_by("reflect")},
      {"reflection_pad1d_backward", gradient_of(pad_by("reflect"))},
      {"reflection_pad2d", pad_by("reflect")},
      {"reflection_pad2d_backward", gradient_of(pad_by("reflect"))},
      {"reflection_pad3d", pad_by("reflect")},
      {"reflection_pad3d_backward", gradient_of(pad_by("reflect"))},
      {"repeat", convert_repeat},
      {"repeat_interleave.self_int", convert_repeat_interleave},
      {"replication_pad1d", pad_by("edge")},
      {"replication_pad1d_backward", gradient_of(pad_by("edge"))},
      {"replication_pad2d", pad_by("edge")},
      {"replication_pad2d_backward", gradient_of(pad_by("edge"))},
      {"replication_pad3d", pad_by("edge")},
      {"replication_pad3d_backward", gradient_of(pad_by("edge"))},
      {"roll", convert_roll},
      {"split", convert_split, Sharing::View},
      {"split.sizes", convert_split_sizes, Sharing::View},
      {"split_copy", convert_split},
      {"split_with_sizes", convert_split_with_sizes, Sharing::View},
      {"split_with_sizes_copy", convert_split_with_sizes},
      {"stack", convert_stack},
      {"tensor_split", convert_tensor_split, Sharing::View},
      {"tile", convert_tile},
      {"unbind", convert_unbind, Sharing::View},
      {"unbind_copy", convert_unbind},
      {"unsafe_chunk", convert_chunk},
      {"unsafe_split", convert_split},
      {"unsafe_split_with_sizes", convert_split_with_sizes},
  };
  return conversions;
}

}  // namespace tenon::torch
