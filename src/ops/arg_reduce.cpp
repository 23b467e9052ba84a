#include "ops/arg_reduce.h"

#include <functional>
#include <utility>

#include "ops/elements.h"
#include "ops/lanes.h"
#include "ops/lower.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

Types infer(const Node& n) {
  const Value x = n.in("x");
  const int64_t axis = checked_axis(n.op().name, n.attr("axis"), x.rank());
  std::vector<Dim> dims = x.shape().dims();
  if (n.attr("keep_dims"))
    dims[static_cast<size_t>(axis)] = 1;
  else
    dims.erase(dims.begin() + axis);
  return {Type::tensor(DType::I64, dims)};
}

// The index of the element that `better` prefers to every other; NaN is preferred to every number.
template <class Better>
Data eval(const Call& c) {
  const Tensor& x = c.in("x");
  const int64_t axis = checked_axis(c.node().op().name, c.attr("axis"), x.rank());
  const bool last = c.attr("last");
  const Lanes lanes(x.extents(), axis);
  Extents extents = x.extents();
  if (c.attr("keep_dims"))
    extents[static_cast<size_t>(axis)] = 1;
  else
    extents.erase(extents.begin() + axis);
  if (lanes.length == 0 && element_count(extents) > 0)
    throw user_error("{}: dimension {} is 0, so there is nothing to choose from", c.node().op().name, axis);
  std::vector<int64_t> y;
  with_wide(x.dtype(), [&]<class T>(T) {
    const std::vector<T> values = widen<T>(x);
    lanes.for_each([&](size_t start) {
      int64_t chosen = 0;
      T best = values[start];
      for (int64_t i = 1; i < lanes.length; ++i) {
        const T value = values[start + static_cast<size_t>(i * lanes.stride)];
        const bool both_nan = value != value && best != best;
        const bool preferred = best == best && (Better()(value, best) || value != value);
        if (preferred || (last && (value == best || both_nan))) {
          chosen = i;
          best = value;
        }
      }
      y.push_back(chosen);
    });
  });
  return {narrow<int64_t>(DType::I64, extents, y)};
}

template <Choice choice>
void lower(LowerContext& c) {
  const Node& n = c.node();
  const Value x = n.in("x");
  const int64_t axis = checked_axis(n.op().name, n.attr("axis"), x.rank());
  const auto chosen = choose_along(c, x, axis, choice, n.attr("last"));
  const bool keep = n.attr("keep_dims");
  c.define([&](Index at) {
    if (!keep)
      at.insert(at.begin() + axis, Scalar::index(0));
    const Scalar index = chosen(at);
    // There must be something to choose from.
    return x.dim(axis).lower_bound().value_or(0) > 0 ? index
                                                     : require(less_equal(Scalar::index(0), index), index);
  });
}

OpDef arg_reduction(std::string_view name, std::string_view doc, EvalFunction eval, LowerFunction lower) {
  return {
      .name = name,
      .doc = doc,
      .operands = {{"x", "T"}},
      .attributes = {{"axis", AttributeKind::Int, "the axis along which one element is chosen"},
                     {"keep_dims", AttributeKind::Bool, "whether the axis stays, with size 1", false},
                     {"last", AttributeKind::Bool, "of equals the last is chosen; else the first", false}},
      .results = {{"y", "i64"}},
      .types = {{"T", NumbersAndBool}},
      .infer = infer,
      .eval = eval,
      .lower = lower};
}

Value apply(std::string_view op, Value x, int64_t axis, Keep keep) {
  return x.graph().create(op, {{"x", x}}, {{"axis", axis}, {"keep_dims", keep == Keep::Dims}})->result();
}

}  // namespace

const Family& arg_reduce_ops() {
  static const Family ops = {
      arg_reduction("arg_max", "the index of the greatest element along one axis; NaN is greatest",
                    eval<std::greater<>>, lower<Choice::Greatest>),
      arg_reduction("arg_min", "the index of the least element along one axis; NaN is least",
                    eval<std::less<>>, lower<Choice::Least>),
  };
  return ops;
}

// The indices say which comes first, so that the pairs may come in any order.
loops::Combine preferred_pair(DType dtype, Choice choice, bool last) {
  const Scalar old_value = Scalar::variable("value", dtype),
               old_index = Scalar::variable("index", DType::I64),
               value = Scalar::variable("new_value", dtype),
               index = Scalar::variable("new_index", DType::I64);
  const Scalar none = less(old_index, Scalar::zero(DType::I64));
  const Scalar better = choice == Choice::Greatest ? less(old_value, value) : less(value, old_value);
  const Scalar earlier = last ? less(old_index, index) : less(index, old_index);
  const Scalar old_nan = is_nan(old_value), new_nan = is_nan(value);
  const Scalar preferred = none || (!less(index, Scalar::zero(DType::I64)) &&
                                    ((new_nan && !old_nan) || (!old_nan && better) ||
                                     ((equal(value, old_value) || (new_nan && old_nan)) && earlier)));
  return {.name = fmt::format("{}_{}_{}", last ? "last" : "first",
                              choice == Choice::Greatest ? "greatest" : "least", dtype),
          .unordered = true,
          .there = {{"value", dtype}, {"index", DType::I64}},
          .coming = {{"new_value", dtype}, {"new_index", DType::I64}},
          .results = {select(preferred, value, old_value), select(preferred, index, old_index)}};
}

DType compared_dtype(DType dtype) { return dtype == DType::Bool ? DType::U8 : wide_dtype(dtype); }

LowerContext::Formula choose_along(LowerContext& c, Value x, int64_t axis, Choice choice, bool last) {
  const DType dtype = compared_dtype(x.dtype());
  std::vector<Dim> sizes = x.shape().dims();
  const Dim length = std::exchange(sizes[static_cast<size_t>(axis)], Dim(1));
  return c.reduce(sizes, {length}, preferred_pair(dtype, choice, last),
                  {Scalar::zero(dtype), loops::constant(DType::I64, -1)}, [&](Index at, const Index& over) {
                    at[static_cast<size_t>(axis)] = over[0];
                    return std::vector{Scalar::cast(dtype, c.in(x, at)), over[0]};
                  })[1];
}

Value arg_max(Value x, int64_t axis, Keep keep) { return apply("arg_max", x, axis, keep); }
Value arg_min(Value x, int64_t axis, Keep keep) { return apply("arg_min", x, axis, keep); }

}  // namespace tenon
