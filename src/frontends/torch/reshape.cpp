// reshape.cpp — PyTorch's views: the same elements in another shape or order; and conversions of dtypes.
#include "ops/reshape.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/memory.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"

namespace tenon::torch {
namespace {

using Permutation = std::vector<int64_t>;

std::vector<Value> convert_identity(const NodeView& n) { return {n.tensor("self")}; }

// --- shapes

std::vector<Value> convert_view(const NodeView& n) {
  return {reshape(n.tensor("self"), n.vector(n.sizes("size")))};
}
std::vector<Value> convert_reshape(const NodeView& n) {
  return {reshape(n.tensor("self"), n.vector(n.sizes("shape")))};
}
std::vector<Value> convert_view_as(const NodeView& n) {
  return {reshape(n.tensor("self"), shape_of(n.tensor("other")))};
}

Value write_reshaped(const NodeView&, Value base, Value updated) { return reshape(updated, shape_of(base)); }
Value write_same(const NodeView&, Value, Value updated) { return updated; }

// view.dtype reads the same bytes as another dtype: of the same width only.
std::vector<Value> convert_view_dtype(const NodeView& n) {
  const Value x = n.tensor("self");
  const DType dtype = n.dtype("dtype", x.dtype());
  if (info(dtype).bytes != info(x.dtype()).bytes)
    throw unsupported("view: {} read as {}", x.type(), dtype);
  return {dtype == x.dtype() ? x : bit_cast(x, dtype)};
}

// The dimensions from start_dim to end_dim as one.
std::vector<Value> convert_flatten(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t rank = n.rank_of(x);
  if (rank == 0)
    return {reshape(x, {1})};
  const int64_t first = n.axis("start_dim", rank, 0), last = n.axis("end_dim", rank, -1);
  if (first > last)
    throw user_error("flatten: start_dim {} comes after end_dim {}", first, last);
  if (first == last)
    return {x};
  std::vector<Dim> dims = x.shape().dims();
  std::vector<Size> sizes;
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (axis == first)
      sizes.emplace_back(int64_t{-1});
    else if (axis < first || axis > last)
      sizes.push_back(x.dim(axis).is_constant() ? Size(*x.dim(axis).constant())
                                                : Size(reshape(size_along(x, axis), Permutation{})));
  }
  // Where a size is 0, -1 could be anything.
  const Dim merged = Shape(std::vector<Dim>(dims.begin() + first, dims.begin() + last + 1)).element_count();
  if (merged.is_constant())
    sizes[static_cast<size_t>(first)] = *merged.constant();
  return {reshape(x, n.vector(sizes))};
}

std::vector<Value> convert_unflatten(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t rank = n.rank_of(x), axis = n.axis("dim", rank);
  std::vector<Size> sizes;
  for (int64_t each = 0; each < rank; ++each) {
    if (each == axis) {
      const std::vector<Size> parts = n.sizes("sizes");
      sizes.insert(sizes.end(), parts.begin(), parts.end());
    } else {
      sizes.push_back(x.dim(each).is_constant() ? Size(*x.dim(each).constant())
                                                : Size(reshape(size_along(x, each), Permutation{})));
    }
  }
  return {reshape(x, n.vector(sizes))};
}

// Only dimensions of size 1 go.
std::vector<Value> convert_squeeze(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t rank = n.rank_of(x);
  if (rank == 0)
    return {x};
  const bool all = !n.has("dim");
  std::vector<int64_t> ones;
  for (int64_t axis : all ? axes_between(0, rank) : checked_axes("squeeze", n.integers("dim"), rank))
    if (x.dim(axis) == Dim(1))
      ones.push_back(axis);
  return {ones.empty() ? x : squeeze(x, ones)};
}

std::vector<Value> convert_unsqueeze(const NodeView& n) {
  const Value x = n.tensor("self");
  return {unsqueeze(x, {n.axis("dim", n.rank_of(x) + 1)})};
}

// -1 keeps a size.
std::vector<Value> convert_expand(const NodeView& n) {
  const Value x = n.tensor("self");
  std::vector<Size> sizes = n.sizes("size");
  const auto kept = static_cast<int64_t>(sizes.size()) - n.rank_of(x);
  for (size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] == Size(int64_t{-1}))
      sizes[i] = int64_t{1};
  if (kept < 0)
    throw user_error("expand: {} sizes for {}", sizes.size(), x.type());
  return {sizes.empty() ? x : broadcast_to(x, n.vector(sizes))};
}
std::vector<Value> convert_expand_as(const NodeView& n) {
  return {broadcast_to(n.tensor("self"), shape_of(n.tensor("other")))};
}

// --- orders

Permutation identity(int64_t rank) { return axes_between(0, rank); }

Permutation swapped(int64_t rank, int64_t a, int64_t b) {
  Permutation permutation = identity(rank);
  std::swap(permutation[static_cast<size_t>(a)], permutation[static_cast<size_t>(b)]);
  return permutation;
}

Value in_order(Value x, const Permutation& permutation) {
  return x.rank() < 2 ? x : transpose(x, permutation);
}

// How each of these ops orders the dimensions of a tensor.
Permutation order_of(const NodeView& n, Value x) {
  const int64_t rank = n.rank_of(x);
  std::string_view op = n.op().substr(0, n.op().find('.'));
  if (op.ends_with("_copy"))
    op.remove_suffix(5);
  if (op == "permute") {
    Permutation permutation = n.integers("dims");
    for (int64_t& axis : permutation)
      axis = checked_axis("permute", axis, rank);
    return permutation;
  }
  if (rank < 2) {
    n.ignore_all();
    return identity(rank);
  }
  if (op == "transpose")
    return swapped(rank, n.axis("dim0", rank), n.axis("dim1", rank));
  if (op == "swapaxes")
    return swapped(rank, n.axis("axis0", rank), n.axis("axis1", rank));
  if (op == "swapdims")
    return swapped(rank, n.axis("dim0", rank), n.axis("dim1", rank));
  if (op == "t" || op == "mT")
    return swapped(rank, rank - 2, rank - 1);
  Permutation reversed = identity(rank);  // numpy_T
  std::ranges::reverse(reversed);
  return reversed;
}

Permutation inverse(const Permutation& permutation) {
  Permutation result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

std::vector<Value> convert_order(const NodeView& n) {
  return {in_order(n.tensor("self"), order_of(n, n.tensor("self")))};
}
Value write_order(const NodeView& n, Value base, Value updated) {
  return in_order(updated, inverse(order_of(n, base)));
}

std::vector<Value> convert_movedim(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t rank = n.rank_of(x);
  const std::vector<int64_t> from = n.integers("source"), to = n.integers("destination");
  if (from.size() != to.size())
    throw user_error("movedim: {} axes go to {} places", from.size(), to.size());
  Permutation permutation(static_cast<size_t>(rank), -1);
  std::vector<bool> moved(static_cast<size_t>(rank), false);
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t source = checked_axis("movedim", from[i], rank);
    int64_t& place = permutation[static_cast<size_t>(checked_axis("movedim", to[i], rank))];
    if (place >= 0 || moved[static_cast<size_t>(source)])
      throw user_error("movedim: an axis is named twice");
    place = source;
    moved[static_cast<size_t>(source)] = true;
  }
  int64_t next = 0;
  for (int64_t& place : permutation) {
    if (place >= 0)
      continue;
    while (moved[static_cast<size_t>(next)])
      ++next;
    place = next++;
  }
  return {in_order(x, permutation)};
}

// --- dtypes

std::vector<Value> convert_to(const NodeView& n) {
  const Value x = n.tensor("self");
  const DType dtype = n.has("other") ? n.tensor("other").dtype() : n.dtype("dtype", x.dtype());
  // A copy on request shares no memory, whatever it is.
  return {n.flag("copy", false) && dtype == x.dtype() ? copy(x) : in_dtype(x, dtype)};
}

Convert to(DType dtype) {
  return [dtype](const NodeView& n) { return std::vector<Value>{in_dtype(n.tensor("self"), dtype)}; };
}

// What dropout does when nobody trains.
std::vector<Value> convert_dropout(const NodeView& n) {
  if (n.flag("train", true) && n.real("p", 0.5) != 0)
    throw unsupported("{} while training\n  hint: call model.eval() before the export", n.op());
  n.ignore("p");
  return {n.tensor(n.has("input") ? "input" : "self")};
}
std::vector<Value> convert_native_dropout(const NodeView& n) { return {convert_dropout(n).front(), Value()}; }

}  // namespace

const Conversions& reshape_conversions() {
  static const Conversions conversions = {
      {"_reshape_alias", convert_view, Sharing::View, write_reshaped},
      {"_to_copy", convert_to},
      {"_unsafe_view", convert_view},
      {"alias", convert_identity, Sharing::View, write_same},
      {"alias_copy", convert_identity},
      {"alpha_dropout", convert_dropout, Sharing::IfSame},
      {"bool", to(DType::Bool), Sharing::IfSame},
      {"broadcast_to", convert_expand, Sharing::View},
      {"clone", convert_identity},
      {"contiguous", convert_identity, Sharing::Perhaps},
      {"detach", convert_identity, Sharing::View, write_same},
      {"detach_copy", convert_identity},
      {"detach_", convert_identity, Sharing::View, write_same},
      {"dropout", convert_dropout, Sharing::IfSame},
      {"expand", convert_expand, Sharing::View},
      {"expand_copy", convert_expand},
      {"expand_as", convert_expand_as, Sharing::View},
      {"feature_dropout", convert_dropout, Sharing::IfSame},
      {"flatten", convert_flatten, Sharing::Perhaps},
      {"float", to(DType::F32), Sharing::IfSame},
      {"lift", convert_identity, Sharing::View, write_same},
      {"lift_fresh", convert_identity, Sharing::View, write_same},
      {"lift_fresh_copy", convert_identity},
      {"long", to(DType::I64), Sharing::IfSame},
      {"mT", convert_order, Sharing::View, write_order},
      {"movedim", convert_movedim, Sharing::View},
      {"native_dropout", convert_native_dropout},
      {"numpy_T", convert_order, Sharing::View, write_order},
      {"permute", convert_order, Sharing::View, write_order},
      {"permute_copy", convert_order},
      {"ravel", convert_flatten, Sharing::Perhaps},
      {"requires_grad_", convert_identity, Sharing::View, write_same},
      {"reshape", convert_reshape, Sharing::Perhaps},
      {"reshape_as", convert_view_as, Sharing::Perhaps},
      {"resolve_conj", convert_identity, Sharing::View, write_same},
      {"resolve_neg", convert_identity, Sharing::View, write_same},
      {"squeeze", convert_squeeze, Sharing::View, write_reshaped},
      {"squeeze_copy", convert_squeeze},
      {"swapaxes", convert_order, Sharing::View, write_order},
      {"swapdims", convert_order, Sharing::View, write_order},
      {"t", convert_order, Sharing::View, write_order},
      {"t_copy", convert_order},
      {"to", convert_to, Sharing::IfSame},
      {"transpose", convert_order, Sharing::View, write_order},
      {"transpose_copy", convert_order},
      {"type_as", convert_to, Sharing::IfSame},
      {"unflatten", convert_unflatten, Sharing::View, write_reshaped},
      {"unsqueeze", convert_unsqueeze, Sharing::View, write_reshaped},
      {"unsqueeze_copy", convert_unsqueeze},
      {"view", convert_view, Sharing::View, write_reshaped},
      {"view_copy", convert_view},
      {"view.dtype", convert_view_dtype, Sharing::View},
      {"view_copy.dtype", convert_view_dtype},
      {"view_as", convert_view_as, Sharing::View, write_reshaped},
  };
  return conversions;
}

}  // namespace tenon::torch
