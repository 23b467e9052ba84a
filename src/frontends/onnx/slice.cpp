// slice.cpp — ONNX ops that take tensors apart, put them together, or add to them.
#include "ops/slice.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/pad.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"

namespace tenon::onnx {
namespace {

std::vector<Value> convert_slice(const NodeView& n) {
  const Value x = n.in(0);
  if (n.opset() < 10) {
    const std::vector<int64_t> starts = n.integers("starts");
    return {slice(x, int_vector(n.graph(), starts), int_vector(n.graph(), n.integers("ends")),
                  n.integers("axes", axes_between(0, static_cast<int64_t>(starts.size()))))};
  }
  // These may be i32.
  const Value starts = in_dtype(n.in(1), DType::I64), ends = in_dtype(n.in(2), DType::I64),
              steps = in_dtype(n.maybe(4), DType::I64);
  if (const Value axes = n.maybe(3))
    return n.make("slice", {{"x", x}, {"starts", starts}, {"ends", ends}, {"steps", steps}, {"axes", axes}});
  const auto count = known_length("Slice", "starts", starts);
  if (!count)
    throw unsupported("Slice: without axes, the number of starts must be known when the model is read");
  return {slice(x, starts, ends, axes_between(0, *count), steps)};
}

// Before opset 4, axis 1 is what is meant where none is given.
std::vector<Value> convert_concat(const NodeView& n) {
  const std::vector<Value> parts = n.ins();
  if (parts.empty())
    throw user_error("Concat: it needs at least one input");
  return {concat(parts, n.opset() < 4 ? n.integer("axis", 1) : n.integer("axis"))};
}

// A vector whose length may only be known from what it is for.
Value of_length(Value vector, int64_t length) {
  return known_length("Split", "split", vector) ? vector : reshape(vector, {length});
}

// Parts of equal size; where that does not come out even, the last is smaller (so from opset 18 on, and
// before then not allowed).
Value equal_sizes(const NodeView& n, Value x, int64_t axis) {
  const auto parts = static_cast<int64_t>(n.output_count());
  if (parts == 0 || n.integer("num_outputs", parts) != parts)
    throw user_error("Split: num_outputs is {}, but {} outputs are named", n.integer("num_outputs", parts),
                     parts);
  const Value whole =
      of_length(size_along(x, x.shape().ranked() ? checked_axis("Split", axis, x.rank()) : axis), 1);
  if (const auto known = whole.known_ints()) {
    std::vector<int64_t> sizes(static_cast<size_t>(parts), (known->front() + parts - 1) / parts);
    sizes.back() = known->front() - sizes.front() * (parts - 1);
    return int_vector(n.graph(), sizes);
  }
  const Value size = (whole + static_cast<double>(parts - 1)) / static_cast<double>(parts);
  std::vector<Value> sizes(static_cast<size_t>(parts - 1), size);
  sizes.push_back(whole - size * static_cast<double>(parts - 1));
  return concat(sizes, 0);
}

std::vector<Value> convert_split(const NodeView& n) {
  const Value x = n.in(0);
  const int64_t axis = n.integer("axis", 0);
  if (const Value sizes = n.maybe(1))
    return split(x, of_length(sizes, static_cast<int64_t>(n.output_count())), axis);
  if (n.has("split"))
    return split(x, n.integers("split"), axis);
  return split(x, equal_sizes(n, x, axis), axis);
}

// What is added is an attribute in opsets 1 (`paddings`) and 2 (`pads`), and an input from 11 on.
std::vector<Value> convert_pad(const NodeView& n) {
  const Value x = n.in(0);
  const Attributes mode = {{"mode", n.text("mode", "constant")}};
  if (n.opset() < 11) {
    const std::vector<int64_t> pads = n.integers(n.opset() < 2 ? "paddings" : "pads");
    Attributes attributes = mode;
    attributes.emplace("axes", axes_between(0, static_cast<int64_t>(pads.size() / 2)));
    return n.make("pad",
                  {{"x", x},
                   {"pads", int_vector(n.graph(), pads)},
                   {"value", scalar(n.graph(), x.dtype(), n.real("value", 0))}},
                  attributes);
  }
  std::vector<Operand> operands = {{"x", x}, {"pads", n.in(1)}, {"value", n.maybe(2)}};
  if (const Value axes = n.maybe(3)) {
    operands.emplace_back("axes", axes);
    return n.make("pad", operands, mode);
  }
  Attributes attributes = mode;
  attributes.emplace("axes", axes_between(0, n.rank_of(x)));
  return n.make("pad", operands, attributes);
}

// In opset 1, one number says how often, another along which axis.
std::vector<Value> convert_tile(const NodeView& n) {
  const Value x = n.in(0);
  if (n.opset() >= 6)
    return {tile(x, n.in(1))};
  const std::vector<int64_t> times = n.constant_ints(1, "tiles"), axis = n.constant_ints(2, "axis");
  if (times.size() != 1 || axis.size() != 1)
    throw user_error("Tile: tiles and axis must be one number each, but are {} and {}", n.in(1).type(),
                     n.in(2).type());
  const int64_t rank = n.rank_of(x);
  std::vector<int64_t> repeats(static_cast<size_t>(rank), 1);
  repeats[static_cast<size_t>(checked_axis("Tile", axis.front(), rank))] = times.front();
  return {tile(x, int_vector(n.graph(), repeats))};
}

// Each axis is cut or padded on both sides to the size wanted; an odd element goes to the end. Cutting an odd
// number, too: so the half rounds towards zero, written here as the difference of two halves that are not
// negative, whose signs shape inference need not know.
std::vector<Value> convert_center_crop_pad(const NodeView& n) {
  const Value x = n.in(0), wanted = in_dtype(n.in(1), DType::I64);
  const int64_t rank = n.rank_of(x);
  const std::vector<int64_t> axes = n.integers("axes", axes_between(0, rank));
  std::vector<Value> sizes;
  for (const int64_t axis : axes)
    sizes.push_back(size_along(x, checked_axis("CenterCropPad", axis, rank)));
  if (sizes.empty())
    return {x};
  const Value size = concat(sizes, 0), zero = scalar(n.graph(), DType::I64, 0);
  const Value before = maximum(wanted - size, zero) / 2.0 - maximum(size - wanted, zero) / 2.0;
  return {pad(x, concat({before, wanted - size - before}, 0), axes)};
}

std::vector<Value> convert_reverse_sequence(const NodeView& n) {
  return n.make("reverse_sequence", {{"x", n.in(0)}, {"lengths", n.in(1)}},
                {{"time_axis", n.integer("time_axis", 0)}, {"batch_axis", n.integer("batch_axis", 1)}});
}

// Of the first opsets, taken back in 2019. Images are [batch, channel, height, width]; `border` says how much
// to leave out at the left, top, right and bottom; `scale`, where given, says instead what height and width
// to take from there.
std::vector<Value> convert_crop(const NodeView& n) {
  const std::vector<int64_t> border = n.integers("border", {0, 0, 0, 0}), size = n.integers("scale", {});
  if (border.size() != 4 || (!size.empty() && size.size() != 2))
    throw user_error("Crop: border takes 4 numbers, and scale 2, but they have {} and {}", border.size(),
                     size.size());
  const auto end = [&](size_t axis) {
    return size.empty() ? -border[3 - axis] : border[1 - axis] + size[axis];
  };
  Value x = n.in(0);
  for (size_t axis : {0, 1})
    x = slice(x, static_cast<int64_t>(2 + axis), border[1 - axis], end(axis) == 0 ? kToTheEnd : end(axis));
  return {x};
}

}  // namespace

const Conversions& slice_conversions() {
  static const Conversions conversions = {
      {"CenterCropPad", convert_center_crop_pad},
      {"Concat", convert_concat},
      {"Crop", convert_crop},
      {"Pad", convert_pad},
      {"ReverseSequence", convert_reverse_sequence},
      {"Slice", convert_slice},
      {"Split", convert_split},
      {"Tile", convert_tile},
  };
  return conversions;
}

}  // namespace tenon::onnx
