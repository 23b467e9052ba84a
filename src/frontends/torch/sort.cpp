// sort.cpp — PyTorch's ops that order elements.
#include "ops/sort.h"

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/scalars.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "tensor/wide.h"

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

// --- elements by their rank

// The elements in ascending order along an axis, and where they stand; NaN is last.
struct Ascending {
  Value given, x, values, places;
  int64_t axis;
  bool keep;  // the axis, with size 1

  // Of all elements, where no axis is named.
  explicit Ascending(const NodeView& n) : given(n.tensor("self")) {
    const bool all = n.spec().inputs.size() == 1;
    x = all ? reshape(given, {-1}) : as_vector(given);
    axis = all ? 0 : n.axis("dim", n.rank_of(x), -1);
    keep = n.flag("keepdim", false) && given.rank() > 0;
    const std::vector<Value> both = top_k(x, size_along(x, axis), axis, false);
    values = both[0];
    places = both[1];
  }

  // The element of that rank, and where it stands. The rank is i64, of the shape of x, but 1 along the axis.
  std::vector<Value> at(Value rank) const {
    std::vector<Value> both = {gather_elements(values, rank, axis), gather_elements(places, rank, axis)};
    if (!keep)
      for (Value& each : both)
        each = squeeze(each, {axis});
    return both;
  }
  Value count(Value truths) const { return reduce_sum(cast(truths, DType::I64), {axis}, Keep::Dims); }
  Value size() const { return count(equal(places, places)); }
  // How many are numbers.
  Value numbers() const { return is_float(x.dtype()) ? count(logical_not(is_nan(x))) : size(); }
};

Value lower_median(const NodeView& n, Value count) {
  const Value zero = n.number(DType::I64, 0), two = n.number(DType::I64, 2);
  return maximum(count - 1.0, zero) / two;
}

// The lesser of the two in the middle; NaN, the first of them, where there is one.
std::vector<Value> convert_median(const NodeView& n) {
  const Ascending all(n);
  const Value numbers = all.numbers(), size = all.size();
  return all.at(where(equal(numbers, size), lower_median(n, size), numbers));
}
// Of the numbers; NaN where there is none.
std::vector<Value> convert_nanmedian(const NodeView& n) {
  const Ascending all(n);
  return all.at(lower_median(n, all.numbers()));
}

std::vector<Value> convert_kthvalue(const NodeView& n) {
  const Ascending all(n);
  return all.at(broadcast_to(n.as_number(n.size("k")) - 1.0, shape_of(all.size())));
}

// The most frequent element, of those the least, and where it stands last.
std::vector<Value> convert_mode(const NodeView& n) {
  const Value given = n.tensor("self"), x = as_vector(given);
  const int64_t axis = n.axis("dim", n.rank_of(x), -1);
  const bool keep = n.flag("keepdim", false) && given.rank() > 0;
  const Value same = equal(unsqueeze(x, {axis + 1}), unsqueeze(x, {axis}));
  const Value counts = reduce_sum(cast(same, DType::I64), {axis + 1});
  const Value most = equal(counts, reduce_max(counts, {axis}, Keep::Dims));
  const Value greatest = reduce_max(x, {axis}, Keep::Dims);
  const Value least = reduce_min(where(most, x, greatest), {axis}, Keep::Dims);
  const Value place = n.make_one("arg_max", {{"x", cast(equal(x, least), DType::I64)}},
                                 {{"axis", axis}, {"keep_dims", true}, {"last", true}});
  return {keep ? least : squeeze(least, {axis}), keep ? place : squeeze(place, {axis})};
}

// The different elements, in order, which of them each element is, and how often each occurs.
std::vector<Value> convert_unique(const NodeView& n) {
  const Value x = n.tensor("self");
  n.ignore("sorted");
  const std::vector<Value> all = unique(reshape(x, {-1}), 0);
  const Value none = fill(int_vector(n.graph(), {0}), Tensor::scalar(int64_t{0}));
  return {all[0], n.flag("return_inverse", false) ? reshape(all[2], shape_of(x)) : none,
          n.flag("return_counts", false) ? all[3] : none};
}

// How many elements fall in each of equally wide bins from min to max, which counts; of all there are, where
// both are the same.
std::vector<Value> convert_histc(const NodeView& n) {
  const Value x = reshape(n.tensor("self"), {-1});
  const int64_t bins = n.integer("bins", 100);
  if (bins < 1)
    throw user_error("histc: bins is {}", bins);
  Value least = n.number(x.dtype(), n.real("min", 0)), greatest = n.number(x.dtype(), n.real("max", 0));
  if (n.real("min", 0) == n.real("max", 0)) {
    least = reduce_min(x, {0});
    greatest = reduce_max(x, {0});
    const Value alone = equal(least, greatest);
    least = where(alone, least - 1.0, least);
    greatest = where(alone, greatest + 1.0, greatest);
  }
  const DType wide = float_type(x.dtype());
  const Value position =
      in_dtype(x - least, wide) / in_dtype(greatest - least, wide) * static_cast<double>(bins);
  const Value within = logical_and(greater_equal(x, least), less_equal(x, greatest));
  const Value last = n.number(DType::I64, static_cast<double>(bins - 1));
  const Value index = minimum(cast(keep_where(within, position), DType::I64), last);
  const Value zeros = fill(int_vector(n.graph(), {bins}), filled(x.dtype(), {}, 0));
  return {scatter_elements(zeros, index, cast(within, x.dtype()), 0, "add")};
}

// --- places in what is ordered

// How many boundaries lie before each element, or at it, too.
Value places(const NodeView& n, Value x, Value boundaries) {
  const bool right = n.text("side", n.flag("right", false) ? "right" : "left") == "right";
  const DType dtype = result_type({x, boundaries});
  const Value element = unsqueeze(in_dtype(x, dtype), {n.rank_of(x)}), line = in_dtype(boundaries, dtype);
  // One line of boundaries for all, or for each line of elements its own.
  const Value bound = line.rank() > 1 ? unsqueeze(line, {line.rank() - 1}) : line;
  const Value before = right ? less_equal(bound, element) : less(bound, element);
  const Value counts = reduce_sum(cast(before, DType::I64), {x.rank()});
  return n.flag("out_int32", false) ? cast(counts, DType::I32) : counts;
}
std::vector<Value> convert_bucketize(const NodeView& n) {
  return {places(n, as_value(n.graph(), n.term("self"), n.term("self").dtype()), n.tensor("boundaries"))};
}
std::vector<Value> convert_searchsorted(const NodeView& n) {
  Value boundaries = n.tensor("sorted_sequence");
  if (const Value sorter = n.maybe_tensor("sorter"))
    boundaries = gather_elements(boundaries, sorter, n.rank_of(boundaries) - 1);
  return {places(n, as_value(n.graph(), n.term("self"), n.term("self").dtype()), boundaries)};
}

}  // namespace

const Conversions& sort_conversions() {
  static const Conversions conversions = {
      {"argsort", convert_argsort}, {"bucketize", convert_bucketize}, {"searchsorted", convert_searchsorted},
      {"histc", convert_histc},     {"kthvalue", convert_kthvalue},   {"median", convert_median},
      {"mode", convert_mode},       {"nanmedian", convert_nanmedian}, {"_unique2", convert_unique},
      {"sort", convert_sort},       {"topk", convert_topk},
  };
  return conversions;
}

}  // namespace tenon::torch
