// sort.cpp — PyTorch's ops that order elements.
#include "ops/sort.h"

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "ops/binary.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"

namespace tenon::torch {
namespace {

// A scalar is a vector of one.
std::vector<Value> ordered(const NodeView& n, Value x, Value count, int64_t axis, bool largest) {
  if (n.rank_of(x) > 0)
    return top_k(x, count, axis, largest);
  std::vector<Value> both = top_k(reshape(x, {1}), count, 0, largest);
  for (Value& each : both)
    each = reshape(each, std::vector<int64_t>{});
  return both;
}

std::vector<Value> convert_topk(const NodeView& n) {
  const Value x = n.tensor("self");
  n.ignore("sorted");
  return ordered(n, x, n.vector({n.size("k")}), n.axis("dim", n.rank_of(x), -1), n.flag("largest", true));
}

// All of them are the greatest, or least, as many as there are; of equal ones the first comes first.
std::vector<Value> convert_sort(const NodeView& n) {
  const Value x = n.tensor("self");
  n.ignore("stable");
  const int64_t axis = n.axis("dim", n.rank_of(x), -1);
  const Value count = x.rank() == 0 ? n.vector({int64_t{1}}) : size_along(x, axis);
  return ordered(n, x, count, axis, n.flag("descending", false));
}
std::vector<Value> convert_argsort(const NodeView& n) { return {convert_sort(n)[1]}; }

// How many boundaries lie before each element, or at it, too.
Value places(const NodeView& n, Value x, Value boundaries) {
  const bool right = n.flag("right", false);
  const DType dtype = result_type({x, boundaries});
  const Value element = unsqueeze(in_dtype(x, dtype), {n.rank_of(x)}), bound = in_dtype(boundaries, dtype);
  const Value before = right ? less_equal(bound, element) : less(bound, element);
  const Value counts = reduce_sum(cast(before, DType::I64), {x.rank()});
  return n.flag("out_int32", false) ? cast(counts, DType::I32) : counts;
}
std::vector<Value> convert_bucketize(const NodeView& n) {
  return {places(n, as_value(n.graph(), n.term("self"), n.term("self").dtype()), n.tensor("boundaries"))};
}
std::vector<Value> convert_searchsorted(const NodeView& n) {
  const Value boundaries = n.tensor("sorted_sequence");
  if (n.rank_of(boundaries) != 1 || n.has("sorter") ||
      n.text("side", n.flag("right", false) ? "right" : "left") !=
          (n.flag("right", false) ? "right" : "left"))
    throw unsupported("searchsorted: of {}, with a sorter, or with a side", boundaries.type());
  return {places(n, as_value(n.graph(), n.term("self"), n.term("self").dtype()), boundaries)};
}

}  // namespace

const Conversions& sort_conversions() {
  static const Conversions conversions = {
      {"argsort", convert_argsort}, {"bucketize", convert_bucketize}, {"searchsorted", convert_searchsorted},
      {"sort", convert_sort},       {"topk", convert_topk},
  };
  return conversions;
}

}  // namespace tenon::torch
