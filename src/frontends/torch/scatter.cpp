// scatter.cpp — PyTorch's ops that replace elements: by index, by mask, or all of them.
#include "ops/scatter.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/advanced_index.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "ops/binary.h"
#include "ops/cumulative.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

// A mask and one value need no indices.
std::vector<Value> convert_index_put(const NodeView& n) {
  const Value x = n.tensor("self"), values = in_dtype(n.tensor("values"), x.dtype());
  const std::vector<Value> indices = n.optional_tensors("indices");
  const bool adds = n.flag("accumulate", false);
  n.ignore("unsafe");
  if (indices.size() == 1 && indices.front() && indices.front().dtype() == DType::Bool && !adds &&
      values.shape().element_count() == Dim(1)) {
    const Value mask = indices.front();
    const int64_t more = n.rank_of(x) - n.rank_of(mask);
    const Value wide = more > 0 ? unsqueeze(mask, axes_between(mask.rank(), x.rank())) : mask;
    return {where(wide, reshape(values, std::vector<int64_t>{}), x)};
  }
  return {AdvancedIndex(n, x, indices).write(values, adds ? "add" : "none")};
}

// Of a source, only as much as there are indices counts.
Value source_for(const NodeView& n, Value x, Value index) {
  if (n.has("value") || (n.has("src") && n.term("src").is_number())) {
    const Value value = as_value(n.graph(), n.term(n.has("value") ? "value" : "src"), x.dtype());
    return broadcast_to(value, shape_of(index));
  }
  const Value source = n.tensor("src");
  if (source.shape() == index.shape())
    return source;
  const Value zeros = int_vector(n.graph(), std::vector<int64_t>(static_cast<size_t>(n.rank_of(index)), 0));
  return slice(source, zeros, shape_of(index), axes_between(0, index.rank()));
}

std::vector<Value> scattered(const NodeView& n, std::string_view reduction) {
  const Value x = n.tensor("self"), index = n.tensor("index");
  return {scatter_elements(x, index, source_for(n, x, index), n.axis("dim", n.rank_of(x)), reduction)};
}

std::vector<Value> convert_scatter(const NodeView& n) {
  const std::string reduce = n.text("reduce", "");
  if (!reduce.empty() && reduce != "add" && reduce != "multiply")
    throw user_error("scatter: reduce is \"{}\", but must be add or multiply", reduce);
  return scattered(n, reduce.empty() ? "none" : reduce == "add" ? "add" : "mul");
}
std::vector<Value> convert_scatter_add(const NodeView& n) { return scattered(n, "add"); }

std::vector<Value> convert_scatter_reduce(const NodeView& n) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"sum", "add"}, {"prod", "mul"}, {"amax", "max"}, {"amin", "min"}};
  const std::string reduce = n.text("reduce");
  const auto found = std::ranges::find(words, reduce, &std::pair<std::string_view, std::string_view>::first);
  if (found == std::end(words) || !n.flag("include_self", true))
    throw unsupported("scatter_reduce: reduce \"{}\", or leaving out what was there", reduce);
  return scattered(n, found->second);
}

// Rows of a source, added or put at indices along an axis.
std::vector<Value> along_axis(const NodeView& n, Value source, std::string_view reduction) {
  const Value x = n.tensor("self");
  const int64_t axis = n.axis("dim", n.rank_of(x));
  std::vector<Value> indices(static_cast<size_t>(axis), Value());
  indices.push_back(n.tensor("index"));
  return {AdvancedIndex(n, x, indices).write(in_dtype(source, x.dtype()), reduction)};
}
std::vector<Value> convert_index_add(const NodeView& n) {
  const double alpha = n.real("alpha", 1);
  return along_axis(n, alpha == 1 ? n.tensor("source") : n.tensor("source") * alpha, "add");
}
std::vector<Value> convert_index_copy(const NodeView& n) { return along_axis(n, n.tensor("source"), "none"); }
std::vector<Value> convert_index_fill(const NodeView& n) {
  return along_axis(n, as_value(n.graph(), n.term("value"), n.tensor("self").dtype()), "none");
}

// The elements of the source, one after the other, where the mask holds: its n-th place takes the n-th of
// them.
std::vector<Value> convert_masked_scatter(const NodeView& n) {
  const Value x = n.tensor("self"), source = in_dtype(n.tensor("source"), x.dtype());
  const Value mask = broadcast_to(n.tensor("mask"), shape_of(x));
  const Value count = cumulative_sum(cast(reshape(mask, {-1}), DType::I64), 0) - 1.0;
  const Value taken = gather(reshape(source, {-1}), maximum(count, n.number(DType::I64, 0)), 0);
  return {where(mask, reshape(taken, shape_of(x)), x)};
}

// The gradient of the source.
std::vector<Value> convert_masked_scatter_backward(const NodeView& n) {
  const Value dy = n.tensor("grad_output");
  const Value source = fill(n.vector(n.sizes("sizes")), filled(dy.dtype(), {}, 0));
  return {gradients(n, convert_masked_scatter, {{"self", dy}, {"source", source}}, {dy})[1]};
}

// --- all elements

std::vector<Value> convert_fill(const NodeView& n) {
  const Value x = n.tensor("self");
  return {broadcast_to(as_value(n.graph(), n.term("value"), x.dtype()), shape_of(x))};
}
std::vector<Value> convert_zero(const NodeView& n) {
  const Value x = n.tensor("self");
  return {broadcast_to(as_value(n.graph(), Number(false), x.dtype()), shape_of(x))};
}
std::vector<Value> convert_copy(const NodeView& n) {
  const Value x = n.tensor("self"), source = in_dtype(n.tensor("src"), x.dtype());
  return {source.shape() == x.shape() ? source : broadcast_to(source, shape_of(x))};
}

}  // namespace

const Conversions& scatter_conversions() {
  static const Conversions conversions = {
      {"copy", convert_copy},
      {"fill", convert_fill},
      {"index_add", convert_index_add},
      {"index_copy", convert_index_copy},
      {"index_fill", convert_index_fill},
      {"index_put", convert_index_put},
      {"_unsafe_index_put", convert_index_put},
      {"masked_scatter", convert_masked_scatter},
      {"masked_scatter_backward", convert_masked_scatter_backward},
      {"scatter", convert_scatter},
      {"scatter_add", convert_scatter_add},
      {"scatter_reduce", convert_scatter_reduce},
      {"zero", convert_zero},
  };
  return conversions;
}

}  // namespace tenon::torch
