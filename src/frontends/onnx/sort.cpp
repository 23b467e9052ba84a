// sort.cpp — ONNX ops that order or select elements by their value.
#include "ops/sort.h"

#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/reshape.h"
#include "ops/select.h"

namespace tenon::onnx {
namespace {

// k is an attribute before opset 10.
std::vector<Value> convert_top_k(const NodeView& n) {
  const Value k = n.opset() >= 10 ? n.in(1) : int_vector(n.graph(), {n.integer("k")});
  return top_k(n.in(0), k, n.integer("axis", -1), n.flag("largest", true), n.flag("sorted", true));
}

// Without an axis, ops of this file work on the flat tensor.
std::pair<Value, int64_t> along_axis(const NodeView& n) {
  if (n.has("axis"))
    return {n.in(0), n.integer("axis")};
  return {reshape(n.in(0), {-1}), 0};
}

std::vector<Value> convert_unique(const NodeView& n) {
  const auto [x, axis] = along_axis(n);
  return unique(x, axis, n.flag("sorted", true));
}

std::vector<Value> convert_non_zero(const NodeView& n) { return {nonzero(n.in(0))}; }

// The condition may be shorter than the axis: the rest is not selected.
std::vector<Value> convert_compress(const NodeView& n) {
  const auto [x, axis] = along_axis(n);
  return {gather(x, squeeze(nonzero(n.in(1)), {0}), axis)};
}

// Before opset 11 a negative index is out of range, as the depth itself is.
std::vector<Value> convert_one_hot(const NodeView& n) {
  Value indices = n.in(0);
  if (n.opset() < 11) {
    const Value signed_indices = cast(indices, DType::I64), zero = scalar(n.graph(), DType::I64, 0);
    const Value depth = reshape(cast(n.in(1), DType::I64), std::vector<int64_t>());
    indices = where(less(signed_indices, zero), depth, signed_indices);
  }
  return {one_hot(indices, n.in(1), n.in(2), n.integer("axis", -1))};
}

std::vector<Value> convert_non_max_suppression(const NodeView& n) {
  return n.make("non_max_suppression",
                {{"boxes", n.in(0)},
                 {"scores", n.in(1)},
                 {"max_per_class", n.maybe(2)},
                 {"overlap_threshold", n.maybe(3)},
                 {"score_threshold", n.maybe(4)}},
                {{"centered", n.flag("center_point_box", false)}});
}

}  // namespace

const Conversions& sort_conversions() {
  static const Conversions conversions = {
      {"Compress", convert_compress}, {"NonMaxSuppression", convert_non_max_suppression},
      {"NonZero", convert_non_zero},  {"OneHot", convert_one_hot},
      {"TopK", convert_top_k},        {"Unique", convert_unique},
  };
  return conversions;
}

}  // namespace tenon::onnx
