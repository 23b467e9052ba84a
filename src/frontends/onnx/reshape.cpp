// reshape.cpp — ONNX ops that give the same elements another shape or order, and constants.
#include "ops/reshape.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/onnx/vectors.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reduce.h"
#include "ops/slice.h"
#include "ops/sort.h"

namespace tenon::onnx {
namespace {

using Permutation = std::vector<int64_t>;

std::vector<Value> convert_constant(const NodeView& n) {
  if (n.has("value"))
    return {constant(n.graph(), n.literal("value"))};
  if (n.has("value_float"))
    return {constant(n.graph(), Tensor::scalar(static_cast<float>(n.real("value_float"))))};
  if (n.has("value_int"))
    return {constant(n.graph(), Tensor::scalar(n.integer("value_int")))};
  if (n.has("value_ints"))
    return {int_vector(n.graph(), n.integers("value_ints"))};
  if (n.has("value_floats"))
    return {constant(n.graph(), float_vector(n.reals("value_floats")))};
  if (n.has("value_string"))
    return {constant(n.graph(), Tensor::strings({n.text("value_string")}, {}))};
  if (n.has("value_strings"))
    return {constant(n.graph(), string_vector(n.texts("value_strings")))};
  if (n.has("sparse_value"))
    return {constant(n.graph(), n.literal("sparse_value"))};
  throw user_error("Constant: it has no value");
}

std::vector<Value> convert_identity(const NodeView& n) { return {n.in(0)}; }

std::vector<Value> convert_reshape(const NodeView& n) {
  const Value shape = n.opset() >= 5 ? n.in(1) : int_vector(n.graph(), n.integers("shape"));
  return n.make("reshape", {{"x", n.in(0)}, {"shape", shape}}, {{"allow_zero", n.flag("allowzero", false)}});
}

std::vector<Value> convert_transpose(const NodeView& n) {
  const Value x = n.in(0);
  if (n.has("perm"))
    return {transpose(x, n.integers("perm"))};
  Permutation reversed = axes_between(0, n.rank_of(x));
  std::ranges::reverse(reversed);
  return {transpose(x, reversed)};
}

// The axes are an attribute in older opsets and an input from 13 on; without any, every 1 goes.
std::vector<Value> convert_squeeze(const NodeView& n) {
  const Value x = n.in(0);
  if (const Value axes = n.maybe(1))
    return n.make("squeeze", {{"x", x}, {"axes", axes}});
  if (n.has("axes"))
    return {squeeze(x, n.integers("axes"))};
  const auto extents = x.shape().extents();
  if (!extents) {
    const Value ones = equal(shape_of(x), scalar(n.graph(), DType::I64, 1));
    return n.make("squeeze", {{"x", x}, {"axes", reshape(nonzero(ones), {-1})}});
  }
  std::vector<int64_t> ones;
  for (size_t i = 0; i < extents->size(); ++i)
    if ((*extents)[i] == 1)
      ones.push_back(static_cast<int64_t>(i));
  return {squeeze(x, ones)};
}

std::vector<Value> convert_unsqueeze(const NodeView& n) {
  if (n.opset() < 13)
    return {unsqueeze(n.in(0), n.integers("axes"))};
  return n.make("unsqueeze", {{"x", n.in(0)}, {"axes", n.in(1)}});
}

std::vector<Value> convert_expand(const NodeView& n) { return {broadcast_to(n.in(0), n.in(1))}; }

// The dimensions from `start` to before `end`, which clamp as those of a slice do.
std::vector<Value> convert_shape(const NodeView& n) {
  const Value shape = shape_of(n.in(0));
  if (!n.has("start") && !n.has("end"))
    return {shape};
  return {slice(shape, 0, n.integer("start", 0), n.integer("end", kToTheEnd))};
}

std::vector<Value> convert_size(const NodeView& n) { return {reduce_prod(shape_of(n.in(0)), {0})}; }

// The product of the sizes from one dimension to before another, as an i64[1].
Value product_of_sizes(Value x, int64_t from, int64_t to) {
  return reduce_prod(slice(shape_of(x), 0, from, to), {0}, Keep::Dims);
}

// The shape that Flatten gives, with -1 for a side that the other one tells; nothing where neither is known.
std::optional<std::vector<int64_t>> flat_shape(const std::vector<Dim>& dims, int64_t axis) {
  const auto rows = Shape(std::vector<Dim>(dims.begin(), dims.begin() + axis)).element_count().constant();
  const auto columns = Shape(std::vector<Dim>(dims.begin() + axis, dims.end())).element_count().constant();
  if ((rows && columns) || rows.value_or(0) > 0 || columns.value_or(0) > 0)
    return std::vector<int64_t>{rows.value_or(-1), columns.value_or(-1)};
  return std::nullopt;
}

std::vector<Value> convert_flatten(const NodeView& n) {
  const Value x = n.in(0);
  int64_t axis = n.integer("axis", 1), rank = kToTheEnd;
  if (x.shape().ranked()) {
    rank = x.rank();
    if (axis < -rank || axis > rank)
      throw user_error("Flatten: axis {} is out of range for a tensor of rank {}", axis, rank);
    axis = axis < 0 ? axis + rank : axis;
    if (const auto shape = flat_shape(x.shape().dims(), axis))
      return {reshape(x, *shape)};
  }
  return {reshape(x, concat({product_of_sizes(x, 0, axis), product_of_sizes(x, axis, rank)}, 0))};
}

// --- DepthToSpace and SpaceToDepth: b × b neighbouring pixels become b² channels, or the other way round.
// Mode DCR has the pixel of the block as the slower part of the channel's number, CRD as the faster part.

int64_t block_size(const NodeView& n) {
  const int64_t block = n.integer("blocksize");
  if (!n.in(0).shape().ranked() || n.in(0).rank() != 4)
    throw user_error("{}: its input must have rank 4, but is {}", n.op_type(), n.in(0).type());
  if (block < 1)
    throw user_error("{}: blocksize is {}", n.op_type(), block);
  return block;
}

bool pixel_is_slower(const NodeView& n) {
  return n.translate<bool>("mode", "DCR", {{"DCR", true}, {"CRD", false}});
}

std::vector<Value> convert_depth_to_space(const NodeView& n) {
  const Value x = n.in(0);
  const Value block = int_vector(n.graph(), {block_size(n)});
  const Value batch = size_along(x, 0), height = size_along(x, 2), width = size_along(x, 3);
  const Value channels = size_along(x, 1) / (block * block);
  const bool slower = pixel_is_slower(n);
  const Value apart = reshape(x, slower ? concat({batch, block, block, channels, height, width}, 0)
                                        : concat({batch, channels, block, block, height, width}, 0));
  const Value turned =
      transpose(apart, slower ? Permutation{0, 3, 4, 1, 5, 2} : Permutation{0, 1, 4, 2, 5, 3});
  return {reshape(turned, concat({batch, channels, height * block, width * block}, 0))};
}

std::vector<Value> convert_space_to_depth(const NodeView& n) {
  const Value x = n.in(0);
  const Value block = int_vector(n.graph(), {block_size(n)});
  const Value batch = size_along(x, 0), channels = size_along(x, 1);
  const Value height = size_along(x, 2) / block, width = size_along(x, 3) / block;
  const Value apart = reshape(x, concat({batch, channels, height, block, width, block}, 0));
  const Value turned =
      transpose(apart, pixel_is_slower(n) ? Permutation{0, 3, 5, 1, 2, 4} : Permutation{0, 1, 3, 5, 2, 4});
  return {reshape(turned, concat({batch, channels * (block * block), height, width}, 0))};
}

}  // namespace

const Conversions& reshape_conversions() {
  static const Conversions conversions = {
      {"Constant", convert_constant},
      {"DepthToSpace", convert_depth_to_space},
      {"Expand", convert_expand},
      {"Flatten", convert_flatten},
      {"Identity", convert_identity},
      {"Reshape", convert_reshape},
      {"Shape", convert_shape},
      {"Size", convert_size},
      {"SpaceToDepth", convert_space_to_depth},
      {"Squeeze", convert_squeeze},
      {"Transpose", convert_transpose},
      {"Unsqueeze", convert_unsqueeze},
  };
  return conversions;
}

}  // namespace tenon::onnx
