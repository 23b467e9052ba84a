// scatter.cpp — PyTorch's ops that replace elements: by index, by mask, or all of them.
#include "ops/scatter.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/advanced_index.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "frontends/torch/scalars.h"
#include "ops/binary.h"
#include "ops/cumulative.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/gradient.h"
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

Value index_of(const NodeView& n) { return in_dtype(as_vector(n.tensor("index")), DType::I64); }

// Of a source, only as much as there are indices counts.
Value source_for(const NodeView& n, Value x, Value index) {
  if (n.has("value") || (n.has("src") && n.term("src").is_number())) {
    const Value value = as_value(n.graph(), n.term(n.has("value") ? "value" : "src"), x.dtype());
    return broadcast_to(value, shape_of(index));
  }
  const Value source = as_vector(n.tensor("src"));
  if (source.shape() == index.shape())
    return source;
  const Value zeros = int_vector(n.graph(), std::vector<int64_t>(static_cast<size_t>(n.rank_of(index)), 0));
  return slice(source, zeros, shape_of(index), axes_between(0, index.rank()));
}

std::vector<Value> scattered(const NodeView& n, std::string_view reduction) {
  const Value given = n.tensor("self"), x = as_vector(given), index = index_of(n);
  return {as_scalar_like(
      scatter_elements(x, index, source_for(n, x, index), n.axis("dim", n.rank_of(x)), reduction), given)};
}

std::vector<Value> convert_scatter(const NodeView& n) {
  const std::string reduce = n.text("reduce", "");
  if (!reduce.empty() && reduce != "add" && reduce != "multiply")
    throw user_error("scatter: reduce is \"{}\", but must be add or multiply", reduce);
  return scattered(n, reduce.empty() ? "none" : reduce == "add" ? "add" : "mul");
}
std::vector<Value> convert_scatter_add(const NodeView& n) { return scattered(n, "add"); }

// --- several elements combined at one place

using Write = std::function<Value(Value base, Value updates, std::string_view reduction)>;

// What changes no element that it is combined with.
Tensor neutral_of(std::string_view reduction, DType dtype) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (reduction == "add" || reduction == "mul" || is_float(dtype))
    return filled(dtype, {},
                  reduction == "add"   ? 0
                  : reduction == "mul" ? 1
                  : reduction == "max" ? -infinity
                                       : infinity);
  const int64_t greatest = std::numeric_limits<int64_t>::max() >> (64 - info(dtype).bits);
  const int64_t most = is_unsigned(dtype) ? 2 * greatest + 1 : greatest,
                least = is_unsigned(dtype) ? 0 : -greatest - 1;
  return narrow<int64_t>(dtype, {}, std::vector<int64_t>{reduction == "max" ? least : most});
}

// The updates combined with each other, and with what was there before if `include_self`.
Value reduced_into(const NodeView& n, Value x, Value updates, const Write& write) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"sum", "add"}, {"prod", "mul"}, {"amax", "max"}, {"amin", "min"}, {"mean", "add"}};
  const std::string reduce = n.text("reduce");
  const auto found = std::ranges::find(words, reduce, &std::pair<std::string_view, std::string_view>::first);
  if (found == std::end(words))
    throw user_error("{}: reduce is \"{}\", but must be sum, prod, mean, amax or amin", n.op(), reduce);
  const bool include_self = n.flag("include_self", true);
  const auto everywhere = [&](const Tensor& element) {
    return broadcast_to(constant(n.graph(), element), shape_of(updates));
  };
  const auto combine = [&](Value base, Value values) {
    const Value start =
        include_self ? base : write(base, everywhere(neutral_of(found->second, x.dtype())), "none");
    return write(start, values, found->second);
  };
  const Value y = combine(x, updates);
  if (reduce != "mean")
    return y;
  const Value count = combine(ones_like(x), everywhere(filled(x.dtype(), {}, 1)));
  return is_float(x.dtype()) ? y / count : floor_quotient(y, count);
}

std::vector<Value> convert_scatter_reduce(const NodeView& n) {
  const Value given = n.tensor("self"), x = as_vector(given), index = index_of(n);
  const Value source = in_dtype(source_for(n, x, index), x.dtype());
  const int64_t axis = n.axis("dim", n.rank_of(x));
  const Value y = reduced_into(n, x, source, [&](Value base, Value updates, std::string_view reduction) {
    return scatter_elements(base, index, updates, axis, reduction);
  });
  return {as_scalar_like(y, given)};
}

// Rows of a source, added or put at indices along an axis.
struct Rows {
  Value given, x;
  AdvancedIndex index;

  explicit Rows(const NodeView& n) : Rows(n, n.tensor("self")) {}
  Rows(const NodeView& n, Value given)
      : given(given), x(as_vector(given)), index(n, x, indices_of(n, n.axis("dim", n.rank_of(x)))) {}

  static std::vector<Value> indices_of(const NodeView& n, int64_t axis) {
    std::vector<Value> indices(static_cast<size_t>(axis), Value());
    indices.push_back(index_of(n));
    return indices;
  }
  Value write(Value base, Value source, std::string_view reduction) const {
    return as_scalar_like(index.write(base, in_dtype(source, x.dtype()), reduction), given);
  }
};

std::vector<Value> along_axis(const NodeView& n, Value source, std::string_view reduction) {
  const Rows rows(n);
  return {rows.write(rows.x, rows.given.rank() == 0 ? as_vector(source) : source, reduction)};
}
std::vector<Value> convert_index_reduce(const NodeView& n) {
  const Rows rows(n);
  const Value source = in_dtype(as_vector(n.tensor("source")), rows.x.dtype());
  const Value y = reduced_into(n, rows.x, source, [&](Value base, Value updates, std::string_view reduction) {
    return rows.index.write(base, updates, reduction);
  });
  return {as_scalar_like(y, rows.given)};
}
std::vector<Value> convert_index_add(const NodeView& n) {
  const double alpha = n.real("alpha", 1);
  return along_axis(n, alpha == 1 ? n.tensor("source") : n.tensor("source") * alpha, "add");
}
std::vector<Value> convert_index_copy(const NodeView& n) { return along_axis(n, n.tensor("source"), "none"); }
std::vector<Value> convert_index_fill(const NodeView& n) {
  return along_axis(n, as_value(n.graph(), n.term("value"), n.tensor("self").dtype()), "none");
}

// Elements put at places of the flattened tensor.
std::vector<Value> convert_put(const NodeView& n) {
  const Value x = n.tensor("self"), source = in_dtype(n.tensor("source"), x.dtype());
  const Value at = reshape(n.tensor("index"), {-1, 1});
  const Value put =
      scatter_nd(reshape(x, {-1}), at, reshape(source, {-1}), n.flag("accumulate", false) ? "add" : "none");
  return {reshape(put, shape_of(x))};
}

// The elements of the source, one after the other, where the mask holds: its n-th place takes the n-th of
// them.
std::vector<Value> convert_masked_scatter(const NodeView& n) {
  const Value given = n.tensor("self"), both = broadcast_to(given, shape_of(n.tensor("mask")));
  const Value x = given.shape() == both.shape() ? given : both,
              source = in_dtype(n.tensor("source"), x.dtype());
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
      {"index_reduce", convert_index_reduce},
      {"_unsafe_index_put", convert_index_put},
      {"masked_scatter", convert_masked_scatter},
      {"masked_scatter_backward", convert_masked_scatter_backward},
      {"put", convert_put},
      {"scatter", convert_scatter},
      {"scatter_add", convert_scatter_add},
      {"scatter_reduce", convert_scatter_reduce},
      {"zero", convert_zero},
  };
  return conversions;
}

}  // namespace tenon::torch
