// reduce.cpp — PyTorch's reductions, and sums that run along an axis.
#include "ops/reduce.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "frontends/torch/scalars.h"
#include "frontends/torch/truth.h"
#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/cumulative.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/gradient.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/unary.h"

namespace tenon::torch {
namespace {

using Reduce = Value (*)(Value, const Axes&, Keep);

// A scalar has nothing to reduce.
Value reduce(Reduce formula, Value x, const Axes& axes, Keep keep) {
  return x.rank() == 0 ? x : formula(x, axes, keep);
}

Keep keep_of(const NodeView& n) { return n.flag("keepdim", false) ? Keep::Dims : Keep::None; }

// Integers and truths add up in 64 bits.
Value summable(const NodeView& n, Value x) {
  return in_dtype(x, n.dtype("dtype", is_float(x.dtype()) ? x.dtype() : DType::I64));
}

Convert total(Reduce formula) {
  return [formula](const NodeView& n) {
    const Value x = summable(n, n.tensor("self"));
    return std::vector<Value>{reduce(formula, x, n.axes("dim", n.rank_of(x)), keep_of(n))};
  };
}

std::vector<Value> convert_mean(const NodeView& n) {
  const Value x = in_dtype(n.tensor("self"), n.dtype("dtype", n.tensor("self").dtype()));
  return {reduce(reduce_mean, x, n.axes("dim", n.rank_of(x)), keep_of(n))};
}

Convert extreme(Reduce formula) {
  return [formula](const NodeView& n) {
    const Value x = n.tensor("self");
    return std::vector<Value>{reduce(formula, x, n.axes("dim", n.rank_of(x)), keep_of(n))};
  };
}

using Choose = Value (*)(Value, int64_t, Keep);

// The values and indices along one axis.
Convert extreme_along(Reduce formula, Choose choose) {
  return [=](const NodeView& n) {
    const Value x = n.tensor("self");
    const int64_t rank = n.rank_of(x), axis = n.axis("dim", rank);
    if (rank == 0) {
      n.ignore("keepdim");
      return std::vector<Value>{x, n.number(DType::I64, 0)};
    }
    return std::vector<Value>{formula(x, {axis}, keep_of(n)), choose(x, axis, keep_of(n))};
  };
}

// Without an axis, the index into all elements.
Convert index_of(Choose choose) {
  return [choose](const NodeView& n) {
    const Value x = n.tensor("self");
    const int64_t rank = n.rank_of(x);
    if (rank == 0) {
      n.ignore_all();
      return std::vector<Value>{n.number(DType::I64, 0)};
    }
    if (n.has("dim"))
      return std::vector<Value>{choose(x, n.axis("dim", rank), keep_of(n))};
    const Value index = choose(reshape(x, {-1}), 0, Keep::None);
    const std::vector<int64_t> ones(static_cast<size_t>(rank), 1);
    return std::vector<Value>{keep_of(n) == Keep::Dims ? reshape(index, ones) : index};
  };
}

// Whether any, or all, of the elements are not 0; of u8 as u8.
Convert truths(Reduce formula) {
  return [formula](const NodeView& n) {
    const Value x = n.tensor("self"), flags = in_dtype(truth_of(x), DType::U8);
    const Value y = reduce(formula, flags, n.axes("dim", n.rank_of(x)), keep_of(n));
    return std::vector<Value>{x.dtype() == DType::U8 ? y : in_dtype(y, DType::Bool)};
  };
}

std::vector<Value> convert_count_nonzero(const NodeView& n) {
  const Value x = n.tensor("self");
  return {reduce(reduce_sum, in_dtype(truth_of(x), DType::I64), n.axes("dim", n.rank_of(x)), Keep::None)};
}

std::vector<Value> convert_logsumexp(const NodeView& n) {
  const Value x = n.tensor("self");
  return {reduce(reduce_log_sum_exp, in_dtype(x, float_type(x.dtype())), n.axes("dim", n.rank_of(x)),
                 keep_of(n))};
}

// --- variance

struct Spread {
  Value mean, variance;
};

// Divided by the number of elements less the correction: 1, unless the node says otherwise in one of two
// ways.
Spread spread(const NodeView& n) {
  const Value x = n.tensor("self");
  const Axes axes = n.axes("dim", n.rank_of(x));
  const Keep keep = keep_of(n);
  double correction = n.flag("unbiased", true) ? 1 : 0;
  correction = n.real("correction", correction);
  const Value deviation = x - reduce(reduce_mean, x, axes, Keep::Dims);
  const Value squares = reduce(reduce_sum, deviation * deviation, axes, keep);
  Dim count = 1;
  for (int64_t axis : axes)
    count = count * x.dim(axis);
  if (!count.is_constant())
    throw unsupported("{}: the number of elements of {} along its axes depends on dynamic sizes", n.op(),
                      x.type());
  const double divisor = std::max(static_cast<double>(*count.constant()) - correction, 0.0);
  return {reduce(reduce_mean, x, axes, keep), squares / divisor};
}
std::vector<Value> convert_var(const NodeView& n) { return {spread(n).variance}; }
std::vector<Value> convert_std(const NodeView& n) { return {sqrt(spread(n).variance)}; }
std::vector<Value> convert_var_mean(const NodeView& n) {
  const Spread both = spread(n);
  return {both.variance, both.mean};
}
std::vector<Value> convert_std_mean(const NodeView& n) {
  const Spread both = spread(n);
  return {sqrt(both.variance), both.mean};
}

// --- norms

Value norm(const NodeView& n, Value x, double order, const Axes& axes) {
  const Keep keep = keep_of(n);
  if (order == 2)
    return sqrt(reduce(reduce_sum, x * x, axes, keep));
  if (order == 1)
    return reduce(reduce_sum, abs(x), axes, keep);
  if (order == std::numeric_limits<double>::infinity())
    return reduce(reduce_max, abs(x), axes, keep);
  if (order == -std::numeric_limits<double>::infinity())
    return reduce(reduce_min, abs(x), axes, keep);
  if (order == 0)
    return reduce(reduce_sum, in_dtype(truth_of(x), x.dtype()), axes, keep);
  return pow(reduce(reduce_sum, pow(abs(x), order), axes, keep), 1 / order);
}

std::vector<Value> norm_of_order(const NodeView& n, std::string_view order) {
  const Value given = n.tensor("self"), x = in_dtype(given, n.dtype("dtype", given.dtype()));
  return {norm(n, x, n.real(order, 2), n.axes("dim", n.rank_of(x)))};
}
std::vector<Value> convert_vector_norm(const NodeView& n) { return norm_of_order(n, "ord"); }
std::vector<Value> convert_norm(const NodeView& n) { return norm_of_order(n, "p"); }

// The distance of each row of one matrix from each of another.
std::vector<Value> convert_cdist(const NodeView& n) {
  const Value a = n.tensor("x1"), b = n.tensor("x2");
  n.ignore("compute_mode");
  const Value difference = unsqueeze(a, {n.rank_of(a) - 1}) - unsqueeze(b, {n.rank_of(b) - 2});
  return {norm(n, difference, n.real("p", 2), {difference.rank() - 1})};
}

std::vector<Value> convert_cdist_backward(const NodeView& n) {
  n.ignore("cdist");
  return gradients(n, convert_cdist, {{"x1", n.tensor("x1")}}, {n.tensor("grad")});
}

// The distance of each row of a matrix from each that comes after it.
std::vector<Value> convert_pdist(const NodeView& n) {
  const Value x = n.tensor("self");
  const auto rows = x.dim(0).constant();
  if (n.rank_of(x) != 2 || !rows)
    throw unsupported("{}: of {}", n.op(), x.type());
  std::vector<int64_t> first, second;
  for (int64_t i = 0; i < *rows; ++i)
    for (int64_t j = i + 1; j < *rows; ++j) {
      first.push_back(i);
      second.push_back(j);
    }
  const auto all = [&](const std::vector<int64_t>& indices) {
    return gather(x, int_vector(n.graph(), indices), 0);
  };
  return {norm(n, all(first) - all(second), n.real("p", 2), {1})};
}
std::vector<Value> convert_pdist_backward(const NodeView& n) {
  n.ignore("pdist");
  return gradients(n, convert_pdist, {{"self", n.tensor("self")}}, {n.tensor("grad")});
}

std::vector<Value> convert_dist(const NodeView& n) {
  const Value a = n.tensor("self"), b = n.tensor("other");
  const DType dtype = result_type({a, b});
  const Value difference = in_dtype(a, dtype) - in_dtype(b, dtype);
  return {norm(n, difference, n.real("p", 2), axes_between(0, n.rank_of(difference)))};
}

// Of the numbers among the elements.
std::vector<Value> convert_nansum(const NodeView& n) {
  const Value given = n.tensor("self");
  const Value x =
      summable(n, is_float(given.dtype()) ? keep_where(logical_not(is_nan(given)), given) : given);
  return {reduce(reduce_sum, x, n.axes("dim", n.rank_of(x)), keep_of(n))};
}
std::vector<Value> convert_nanmean(const NodeView& n) {
  const Value x = in_dtype(n.tensor("self"), n.dtype("dtype", n.tensor("self").dtype()));
  const Value numbers = logical_not(is_nan(x));
  const Axes axes = n.axes("dim", n.rank_of(x));
  return {reduce(reduce_sum, keep_where(numbers, x), axes, keep_of(n)) /
          reduce(reduce_sum, cast(numbers, x.dtype()), axes, keep_of(n))};
}

std::vector<Value> convert_aminmax(const NodeView& n) {
  const Value x = n.tensor("self");
  const Axes axes = n.axes("dim", n.rank_of(x));
  return {reduce(reduce_min, x, axes, keep_of(n)), reduce(reduce_max, x, axes, keep_of(n))};
}

// The distance of two with epsilon added to each difference.
std::vector<Value> convert_pairwise_distance(const NodeView& n) {
  const Value difference = n.tensor("x1") - n.tensor("x2") + n.real("eps", 1e-6);
  return {norm(n, difference, n.real("p", 2), {n.rank_of(difference) - 1})};
}

// Σ ab / (|a| |b|), where no length is less than epsilon.
std::vector<Value> convert_cosine_similarity(const NodeView& n) {
  const Value a = n.tensor("x1"), b = n.tensor("x2");
  const int64_t axis = n.axis("dim", std::max(n.rank_of(a), n.rank_of(b)), 1);
  const int64_t from_end = axis - std::max(a.rank(), b.rank());
  const Value least = n.number(a.dtype(), n.real("eps", 1e-8));
  const auto unit = [&](Value x) {
    return x / maximum(sqrt(reduce_sum(x * x, {x.rank() + from_end}, Keep::Dims)), least);
  };
  const Value product = unit(a) * unit(b);
  return {reduce_sum(product, {axis})};
}

// --- along an axis

Convert running(Value (*formula)(Value, int64_t)) {
  return [formula](const NodeView& n) {
    const Value x = summable(n, n.tensor("self"));
    const int64_t axis = n.axis("dim", n.rank_of(x));
    return std::vector<Value>{x.rank() == 0 ? x : formula(x, axis)};
  };
}

// The greatest or least element so far, and where it stands.
Convert running_extreme(std::string_view op) {
  return [op](const NodeView& n) {
    const Value given = n.tensor("self"), x = as_vector(given);
    const bool truths = given.dtype() == DType::Bool;
    std::vector<Value> both =
        n.make(op, {{"x", truths ? cast(x, DType::U8) : x}}, {{"axis", n.axis("dim", n.rank_of(x))}});
    both[0] = in_dtype(both[0], given.dtype());
    for (Value& each : both)
      each = as_scalar_like(each, given);
    return both;
  };
}
std::vector<Value> convert_log_cumulative_sum_exp(const NodeView& n) {
  const Value given = n.tensor("self"), x = as_vector(given);
  return {as_scalar_like(
      n.make_one("cumulative_log_sum_exp", {{"x", x}}, {{"axis", n.axis("dim", n.rank_of(x))}}), given)};
}

// Each element less the one before it, n times; of truths, whether they differ.
std::vector<Value> convert_diff(const NodeView& n) {
  Value x = n.tensor("self");
  const int64_t axis = n.axis("dim", n.rank_of(x), -1);
  std::vector<Value> parts;
  for (Value part : {n.maybe_tensor("prepend"), x, n.maybe_tensor("append")})
    if (part)
      parts.push_back(part);
  if (parts.size() > 1)
    x = concat(parts, axis);
  for (int64_t iteration = n.integer("n", 1); iteration > 0; --iteration) {
    const Value after = slice(x, axis, 1, kToTheEnd), before = slice(x, axis, 0, -1);
    x = x.dtype() == DType::Bool ? logical_not(equal(after, before)) : after - before;
  }
  return {x};
}

}  // namespace

const Conversions& reduce_conversions() {
  static const Conversions conversions = {
      {"_cdist_backward", convert_cdist_backward},
      {"_cdist_forward", convert_cdist},
      {"_pdist_backward", convert_pdist_backward},
      {"_pdist_forward", convert_pdist},
      {"aminmax", convert_aminmax},
      {"cosine_similarity", convert_cosine_similarity},
      {"nanmean", convert_nanmean},
      {"nansum", convert_nansum},
      {"pairwise_distance", convert_pairwise_distance},
      {"pdist", convert_pdist},
      {"all", truths(reduce_min)},
      {"amax", extreme(reduce_max)},
      {"amin", extreme(reduce_min)},
      {"any", truths(reduce_max)},
      {"argmax", index_of(arg_max)},
      {"argmin", index_of(arg_min)},
      {"cdist", convert_cdist},
      {"count_nonzero", convert_count_nonzero},
      {"cummax", running_extreme("cumulative_max")},
      {"cummin", running_extreme("cumulative_min")},
      {"cumprod", running(cumulative_prod)},
      {"cumsum", running(cumulative_sum)},
      {"diff", convert_diff},
      {"dist", convert_dist},
      {"linalg_vector_norm", convert_vector_norm},
      {"logcumsumexp", convert_log_cumulative_sum_exp},
      {"logsumexp", convert_logsumexp},
      {"max.default", extreme(reduce_max)},
      {"max.dim", extreme_along(reduce_max, arg_max)},
      {"mean", convert_mean},
      {"min.default", extreme(reduce_min)},
      {"min.dim", extreme_along(reduce_min, arg_min)},
      {"norm", convert_norm},
      {"prod", total(reduce_prod)},
      {"std", convert_std},
      {"std_mean", convert_std_mean},
      {"sum", total(reduce_sum)},
      {"var", convert_var},
      {"var_mean", convert_var_mean},
  };
  return conversions;
}

}  // namespace tenon::torch
