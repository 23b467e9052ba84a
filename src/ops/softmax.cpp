#include "ops/softmax.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "ops/arg_reduce.h"
#include "ops/binary.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/lanes.h"
#include "ops/reduce.h"
#include "ops/rounding.h"
#include "ops/shapes.h"
#include "ops/unary.h"

namespace tenon {
namespace {

Types infer(const Node& n) {
  const Value x = n.in("x");
  if (x.shape().ranked())
    checked_axis(n.op().name, n.attr("axis"), x.rank());
  return {x.type()};
}

// formula(lane) works on one lane in place.
template <class F>
Data map_lanes(const Call& c, F&& formula) {
  const Tensor& x = c.in("x");
  const Lanes lanes(x.extents(), checked_axis(c.node().op().name, c.attr("axis"), x.rank()));
  if (x.count() == 0)  // a lane may be longer than memory, if there is none of them
    return {Tensor(x.dtype(), x.extents())};
  std::vector<double> values = widen<double>(x);
  std::vector<double> lane(static_cast<size_t>(lanes.length));
  const auto stride = static_cast<size_t>(lanes.stride);
  lanes.for_each([&](size_t start) {
    for (size_t i = 0; i < lane.size(); ++i)
      lane[i] = values[start + i * stride];
    formula(lane);
    for (size_t i = 0; i < lane.size(); ++i)
      values[start + i * stride] = lane[i];
  });
  return {narrow<double>(x.dtype(), x.extents(), values)};
}

// Subtracting the greatest element changes nothing but keeps exp from overflowing. A lane of -inf only, or
// with +inf or NaN in it, has no softmax: it becomes NaN.
double greatest_of(std::span<const double> lane) {
  double greatest = -std::numeric_limits<double>::infinity();
  for (double value : lane)
    greatest = value > greatest ? value : greatest;
  return greatest;
}

// Partial sums of bf16 are bf16 again (those of f16 are not): so were the numbers made that engines are held
// to. Of more than a few terms the halves are summed first, or the sum would stand still once it is large.
double sum_of_bf16(std::span<const double> terms) {
  double sum = 0;
  if (terms.size() > 8) {
    const size_t half = terms.size() / 2;
    sum = sum_of_bf16(terms.first(half)) + sum_of_bf16(terms.subspan(half));
    round_step(DType::BF16, {&sum, 1});
  } else {
    for (double term : terms) {
      sum += term;
      round_step(DType::BF16, {&sum, 1});
    }
  }
  return sum;
}

Data eval_softmax(const Call& c) {
  return map_lanes(c, [&](std::vector<double>& lane) { apply_softmax(lane, c.in("x").dtype()); });
}

Data eval_log_softmax(const Call& c) {
  return map_lanes(c, [](std::vector<double>& lane) {
    const double greatest = greatest_of(lane);
    double sum = 0;
    for (double value : lane)
      sum += std::exp(value - greatest);
    for (double& value : lane)
      value = value - greatest - std::log(sum);
  });
}

Data eval_hardmax(const Call& c) {
  return map_lanes(c, [](std::vector<double>& lane) {
    size_t chosen = 0;
    for (size_t i = 1; i < lane.size(); ++i)
      if (lane[i] > lane[chosen] || (std::isnan(lane[i]) && !std::isnan(lane[chosen])))
        chosen = i;
    for (size_t i = 0; i < lane.size(); ++i)
      lane[i] = i == chosen ? 1 : 0;
  });
}

// Partial sums of bf16, which are rounded in an order of their own, are left to eval.
void lower_softmax(LowerContext& c) {
  const Value x = c.node().in("x");
  const auto axis = static_cast<size_t>(checked_axis("softmax", c.node().attr("axis"), x.rank()));
  if (x.dtype() == DType::BF16)
    return;
  const DType dtype = wide_dtype(x.dtype());
  const auto rounded = [&](const Scalar& value) {
    return Scalar::cast(dtype, Scalar::cast(x.dtype(), value));
  };
  const auto with = [&](Index at, const Scalar& index) {
    at[axis] = index;
    return at;
  };
  std::vector<Dim> lanes = x.shape().dims();
  const Dim length = std::exchange(lanes[axis], 1);
  const Scalar zero = Scalar::index(0);
  const auto greatest =
      c.reduce(lanes, {length}, "max", loops::constant(dtype, -std::numeric_limits<double>::infinity()),
               [&](const Index& at, const Index& over) { return c.in(x, with(at, over[0])); });
  const auto power = c.keep(x.shape().dims(), [&](const Index& at) {
    return rounded(exp(rounded(c.in(x, at) - greatest(with(at, zero)))));
  });
  const auto sum = c.reduce(lanes, {length}, "+", Scalar::zero(dtype),
                            [&](const Index& at, const Index& over) { return power(with(at, over[0])); });
  c.define([&](const Index& at) { return power(at) / rounded(sum(with(at, zero))); });
}

void lower_hardmax(LowerContext& c) {
  const Value x = c.node().in("x");
  const int64_t axis = checked_axis("hardmax", c.node().attr("axis"), x.rank());
  const auto chosen = choose_along(c, x, axis, Choice::Greatest, false);
  const DType dtype = c.node().result().dtype();
  c.define([&](const Index& at) {
    Index lane = at;
    lane[static_cast<size_t>(axis)] = Scalar::index(0);
    return select(equal(chosen(lane), at[static_cast<size_t>(axis)]), loops::constant(dtype, 1),
                  Scalar::zero(dtype));
  });
}

// --- gradients: written with y rather than x, so that x can be freed early ---

std::vector<Operand> grad_softmax(const GradContext& n) {
  const Value y = n.out(), dy = n.dy();
  return {{"x", y * (dy - reduce_sum(y * dy, {n.attr("axis")}, Keep::Dims))}};
}

std::vector<Operand> grad_log_softmax(const GradContext& n) {
  return {{"x", n.dy() - exp(n.out()) * reduce_sum(n.dy(), {n.attr("axis")}, Keep::Dims)}};
}

// --- decompositions ---

Value shifted(const Node& n) {
  const Value x = n.in("x");
  return x - reduce_max(x, {n.attr("axis")}, Keep::Dims);
}

std::vector<Value> decompose_softmax(const Node& n) {
  const Value powers = exp(shifted(n));
  return {powers / reduce_sum(powers, {n.attr("axis")}, Keep::Dims)};
}

std::vector<Value> decompose_log_softmax(const Node& n) {
  const Value x = shifted(n);
  return {x - log(reduce_sum(exp(x), {n.attr("axis")}, Keep::Dims))};
}

OpDef along_axis(std::string_view name, std::string_view doc, std::string_view axis_doc, EvalFunction eval,
                 GradFunction grad, DecomposeFunction decompose, LowerFunction lower = nullptr) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}},
          .attributes = {{"axis", AttributeKind::Int, axis_doc, -1}},
          .results = {{"y", "T"}},
          .types = {{"T", Floats}},
          .traits = {.takes_unranked = true},
          .infer = infer,
          .eval = eval,
          .lower = lower,
          .grad = grad,
          .decompose = decompose};
}

Value apply(std::string_view op, Value x, int64_t axis) {
  return x.graph().create(op, {{"x", x}}, {{"axis", axis}})->result();
}

}  // namespace

void apply_softmax(std::span<double> lane, DType dtype) {
  const double greatest = greatest_of(lane);
  for (double& value : lane)
    value -= greatest;
  round_step(dtype, lane);
  for (double& value : lane)
    value = std::exp(value);
  round_step(dtype, lane);
  double sum = dtype == DType::BF16 ? sum_of_bf16(lane) : std::accumulate(lane.begin(), lane.end(), 0.0);
  round_step(dtype, {&sum, 1});
  for (double& value : lane)
    value /= sum;
}

const Family& softmax_ops() {
  static const Family ops = {
      along_axis("softmax", "exp(x) / sum(exp(x)) along one axis",
                 "the axis along which the result sums to one", eval_softmax, grad_softmax, decompose_softmax,
                 lower_softmax),
      along_axis("log_softmax", "x - log(sum(exp(x))) along one axis",
                 "the axis along which exp of the result sums to one", eval_log_softmax, grad_log_softmax,
                 decompose_log_softmax),
      along_axis(
          "hardmax", "1 for the first greatest element along one axis, 0 for the others; NaN is greatest",
          "the axis along which one element is chosen", eval_hardmax, no_gradient, nullptr, lower_hardmax),
  };
  return ops;
}

Value softmax(Value x, int64_t axis) { return apply("softmax", x, axis); }
Value log_softmax(Value x, int64_t axis) { return apply("log_softmax", x, axis); }

}  // namespace tenon
