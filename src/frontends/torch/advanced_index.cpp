#include "frontends/torch/advanced_index.h"

#include <algorithm>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "ops/gather.h"
#include "ops/reshape.h"
#include "ops/scatter.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/slice.h"
#include "ops/sort.h"

namespace tenon::torch {
namespace {

std::vector<int64_t> inverse(const std::vector<int64_t>& permutation) {
  std::vector<int64_t> result(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i)
    result[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  return result;
}

Value in_order(Value x, const std::vector<int64_t>& permutation) {
  return std::ranges::is_sorted(permutation) ? x : transpose(x, permutation);
}

}  // namespace

AdvancedIndex::AdvancedIndex(const NodeView& n, Value x, const std::vector<Value>& indices) : x_(x) {
  int64_t axis = 0;
  for (Value index : indices) {
    if (!index) {
      ++axis;
      continue;
    }
    if (index.dtype() == DType::Bool || index.dtype() == DType::U8) {
      const int64_t rank = n.rank_of(index);
      if (rank == 0)
        throw unsupported("{}: an index that is one truth", n.op());
      const Value places = nonzero(index);
      for (int64_t each = 0; each < rank; ++each) {
        indices_.push_back(squeeze(slice(places, 0, each, each + 1), {0}));
        axes_.push_back(axis++);
      }
      continue;
    }
    indices_.push_back(in_dtype(index, DType::I64));
    axes_.push_back(axis++);
  }
  if (axis > n.rank_of(x))
    throw user_error("{}: {} indices for {}", n.op(), axis, x.type());
  if (axes_.empty())
    return;
  Shape shape = indices_.front().shape();
  for (Value index : indices_) {
    n.rank_of(index);
    const auto both = broadcast(shape, index.shape());
    if (!both)
      throw user_error("{}: indices of {} and {} do not broadcast", n.op(), shape, index.shape());
    shape = *both;
  }
  index_rank_ = shape.rank();
  if (indices_.size() == 1)
    return;
  // Each is repeated to the shape of all, whatever that will be.
  std::vector<Value> parts;
  for (size_t i = 0; i < indices_.size(); ++i) {
    Value part = indices_[i];
    for (size_t other = 0; other < indices_.size(); ++other)
      if (other != i && part.shape() != shape)
        part = broadcast_to(part, shape_of(indices_[other]));
    parts.push_back(unsqueeze(part, {index_rank_}));
  }
  tuples_ = concat(parts, index_rank_);
}

std::vector<int64_t> AdvancedIndex::indexed_first() const {
  std::vector<int64_t> order = axes_;
  for (int64_t axis = 0; axis < x_.rank(); ++axis)
    if (std::ranges::find(axes_, axis) == axes_.end())
      order.push_back(axis);
  return order;
}

std::vector<int64_t> AdvancedIndex::result_order() const {
  const int64_t rank = index_rank_ + x_.rank() - static_cast<int64_t>(axes_.size());
  const bool neighbours = axes_.back() - axes_.front() + 1 == static_cast<int64_t>(axes_.size());
  const int64_t before = neighbours ? axes_.front() : 0;
  std::vector<int64_t> order = axes_between(index_rank_, index_rank_ + before);
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis < index_rank_ || axis >= index_rank_ + before)
      order.push_back(axis);
  return order;
}

Value AdvancedIndex::read() const {
  if (axes_.empty())
    return x_;
  if (axes_.size() == 1)
    return gather(x_, indices_.front(), axes_.front());
  return in_order(gather_nd(in_order(x_, indexed_first()), tuples_), result_order());
}

Value AdvancedIndex::write(Value base, Value values, std::string_view reduction) const {
  if (axes_.empty())
    return broadcast_to(values, shape_of(base));
  const Value tuples = tuples_ ? tuples_ : unsqueeze(indices_.front(), {index_rank_});
  const Value x = in_order(base, indexed_first());
  const Value there = gather_nd(x, tuples);  // for its shape
  const std::vector<int64_t> order = result_order();
  const Value result = in_order(there, order);
  const Value wide = values.shape() == result.shape() ? values : broadcast_to(values, shape_of(result));
  const Value put = scatter_nd(x, tuples, in_order(wide, inverse(order)), reduction);
  return in_order(put, inverse(indexed_first()));
}

}  // namespace tenon::torch
