// index.cpp — PyTorch's ops that look elements up by tensors of indices.
#include <algorithm>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/precision.h"
#include "frontends/torch/advanced_index.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "frontends/torch/scalars.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/sort.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

std::vector<Value> convert_index(const NodeView& n) {
  const Value x = n.tensor("self");
  const AdvancedIndex index(n, x, n.optional_tensors("indices"));
  return {index.read()};
}

std::vector<Value> convert_index_select(const NodeView& n) {
  const Value given = n.tensor("self"), x = as_vector(given);
  return {as_scalar_like(gather(x, as_vector(n.tensor("index")), n.axis("dim", n.rank_of(x))), given)};
}

std::vector<Value> convert_gather(const NodeView& n) {
  const Value x = as_vector(n.tensor("self")), given = n.tensor("index");
  const Value index = in_dtype(as_vector(given), DType::I64);
  n.ignore("sparse_grad");
  return {as_scalar_like(gather_elements(x, index, n.axis("dim", n.rank_of(x))), given)};
}

// Both broadcast to each other but for the axis.
std::vector<Value> convert_take_along_dim(const NodeView& n) {
  const Value x = n.tensor("self"), indices = n.tensor("indices");
  if (!n.has("dim"))
    return {gather(reshape(x, {-1}), reshape(indices, {-1}), 0)};
  const int64_t axis = n.axis("dim", n.rank_of(x));
  for (int64_t each = 0; each < x.rank(); ++each)
    if (each != axis && !provably_equal(x.dim(each), indices.dim(each)))
      throw unsupported("take_along_dim: {} and indices {} of other sizes", x.type(), indices.type());
  return {gather_elements(x, indices, axis)};
}

std::vector<Value> convert_take(const NodeView& n) {
  return {gather(reshape(n.tensor("self"), {-1}), n.tensor("index"), 0)};
}

// --- embeddings

// What else the op says is for training.
std::vector<Value> convert_embedding(const NodeView& n) {
  for (std::string_view name : {"padding_idx", "scale_grad_by_freq", "sparse"})
    n.ignore(name);
  return {gather(n.tensor("weight"), n.tensor("indices"), 0)};
}

// Each row of dy is added to the row of the weight that it was read from; not to that of padding.
std::vector<Value> convert_embedding_backward(const NodeView& n) {
  if (n.flag("scale_grad_by_freq", false))
    throw unsupported("{}: gradients that are scaled by how often an index occurs", n.op());
  const Value indices = n.tensor("indices"), given = n.tensor("grad_output"), dy = widened(given);
  const int64_t padding = n.integer("padding_idx", -1);
  const Value rows = as_rows(dy), at = reshape(indices, {-1, 1});
  const Value counts =
      logical_not(equal(at, constant(n.graph(), filled(at.dtype(), {}, static_cast<double>(padding)))));
  const Value weight =
      fill(concat({n.vector({n.size("num_weights")}), size_along(rows, 1)}, 0), filled(dy.dtype(), {}, 0));
  return {
      in_dtype(scatter_nd(weight, at, padding < 0 ? rows : keep_where(counts, rows), "add"), given.dtype())};
}

// Bag i has the indices from offsets[i] to before offsets[i + 1]: each index belongs to the last bag that
// begins at or before it, and a matrix of those memberships adds up the rows.
std::vector<Value> convert_embedding_bag(const NodeView& n) {
  for (std::string_view name : {"scale_grad_by_freq", "sparse"})
    n.ignore(name);
  const int64_t mode = n.integer("mode", 0);
  if (n.has("per_sample_weights") || n.flag("include_last_offset", false) || mode > 1 ||
      n.integer("padding_idx", -1) >= 0)
    throw unsupported("{}: weights for each sample, a last offset, padding, or the greatest instead of a sum",
                      n.op());
  const Value weight = n.tensor("weight"), indices = n.tensor("indices"),
              offsets = in_dtype(n.tensor("offsets"), DType::I64);
  const auto number = [&](int64_t value) { return n.number(DType::I64, static_cast<double>(value)); };
  const auto count = [&](Value of) {
    return range(number(0), reshape(size_along(of, 0), std::vector<int64_t>{}), number(1));
  };
  const Value begun = less_equal(unsqueeze(offsets, {0}), unsqueeze(count(indices), {1}));
  const Value bag = reduce_sum(cast(begun, DType::I64), {1}, Keep::Dims) - 1.0;
  const Value member = cast(equal(unsqueeze(count(offsets), {1}), transpose(bag, {1, 0})), weight.dtype());
  const Value sums = matmul(member, gather(weight, indices, 0));
  if (mode == 0)
    return {sums, Value(), Value(), Value()};
  const Value counts = maximum(reduce_sum(member, {1}, Keep::Dims), n.number(weight.dtype(), 1));
  return {sums / counts, Value(), Value(), Value()};
}

// --- elements that are not zero

std::vector<Value> convert_nonzero(const NodeView& n) {
  return {transpose(nonzero(n.tensor("self")), {1, 0})};
}

// As many as are asked for, filled up with rows of another value.
std::vector<Value> convert_nonzero_static(const NodeView& n) {
  const Value rows = convert_nonzero(n).front();
  const int64_t size = n.integer("size");
  const Value more = fill(concat({int_vector(n.graph(), {size}), size_along(rows, 1)}, 0),
                          Tensor::scalar(n.integer("fill_value", -1)));
  return {slice(concat({rows, more}, 0), 0, 0, size)};
}

std::vector<Value> convert_masked_select(const NodeView& n) {
  const Value x = n.tensor("self"), mask = n.tensor("mask");
  const Value both = broadcast_to(x, shape_of(mask)), places = broadcast_to(mask, shape_of(x));
  return {gather_nd(both, transpose(nonzero(places), {1, 0}))};
}

std::vector<Value> convert_isin(const NodeView& n) {
  const Term elements = n.term("elements"),
             wanted = n.term(n.has("test_elements") ? "test_elements" : "test_element");
  n.ignore("assume_unique");
  const DType dtype = result_type({elements, wanted});
  const Value x = as_value(n.graph(), elements, dtype),
              all = reshape(as_value(n.graph(), wanted, dtype), {-1});
  const Value found = cast(equal(unsqueeze(x, {n.rank_of(x)}), all), DType::U8);
  const Value any = cast(reduce_max(found, {x.rank()}), DType::Bool);
  return {n.flag("invert", false) ? logical_not(any) : any};
}

std::vector<Value> convert_one_hot(const NodeView& n) {
  const int64_t classes = n.integer("num_classes", -1);
  if (classes < 0)
    throw unsupported("one_hot: the number of classes must be given");
  const auto number = [&](int64_t value) { return n.number(DType::I64, static_cast<double>(value)); };
  const Value x = n.tensor("self"), all = range(number(0), number(classes), number(1));
  return {cast(equal(unsqueeze(x, {n.rank_of(x)}), all), DType::I64)};
}

}  // namespace

const Conversions& index_conversions() {
  static const Conversions conversions = {
      {"argwhere", convert_nonzero},
      {"_embedding_bag", convert_embedding_bag},
      {"embedding", convert_embedding},
      {"embedding_bag", convert_embedding_bag},
      {"embedding_dense_backward", convert_embedding_backward},
      {"gather", convert_gather},
      {"index", convert_index},
      {"_unsafe_index", convert_index},
      {"index_select", convert_index_select},
      {"isin", convert_isin},
      {"masked_select", convert_masked_select},
      {"nonzero", convert_nonzero},
      {"nonzero_static", convert_nonzero_static},
      {"one_hot", convert_one_hot},
      {"take", convert_take},
      {"take_along_dim", convert_take_along_dim},
  };
  return conversions;
}

}  // namespace tenon::torch
