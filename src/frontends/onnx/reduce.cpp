// reduce.cpp — ONNX reductions, choices along an axis, and running sums and products.
#include "ops/reduce.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/precision.h"
#include "ops/binary.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

// Over every axis, also where the rank is known only when the model runs: then over the elements in a row.
Value reduce_all(const NodeView& n, std::string_view op, Value x) {
  const bool keep = n.flag("keepdims", true);
  if (x.shape().ranked())
    return n.make(op, {{"x", x}}, {{"axes", axes_between(0, x.rank())}, {"keep_dims", keep}}).front();
  const Value total = n.make(op, {{"x", reshape(x, {-1})}}, {{"axes", std::vector<int64_t>{0}}}).front();
  return keep ? reshape(total, shape_of(x) * 0 + 1) : total;
}

// The axes are an attribute in older opsets and an input in newer ones (from 13 for ReduceSum, from 18 for
// the rest). No axes at all means every axis, or none when `noop_with_empty_axes` says so.
Value reduce(const NodeView& n, std::string_view op, Value x) {
  const bool none_if_empty = n.flag("noop_with_empty_axes", false);
  const Value given = n.maybe(1);
  auto axes = given ? given.known_ints() : n.integers("axes", {});
  if (given && given.shape() == Shape{0})
    axes = std::vector<int64_t>();
  if (axes && axes->empty() && !none_if_empty)
    return reduce_all(n, op, x);
  const Attribute keep = n.flag("keepdims", true);
  if (axes)
    return n.make(op, {{"x", x}}, {{"axes", *axes}, {"keep_dims", keep}}).front();
  if (!none_if_empty && (!given.shape().ranked() || !given.shape().extents()))
    throw unsupported("{}: axes that the model computes ({}), where none would mean all of them", n.op_type(),
                      given.type());
  return n.make(op, {{"x", x}, {"axes", given}}, {{"keep_dims", keep}}).front();
}

Convert reduction(std::string_view op) {
  return [op](const NodeView& n) { return std::vector{reduce(n, op, n.in(0))}; };
}

std::vector<Value> convert_reduce_l1(const NodeView& n) {
  return {reduce(n, "reduce_sum", tenon::abs(n.in(0)))};
}
std::vector<Value> convert_reduce_sum_square(const NodeView& n) {
  return {reduce(n, "reduce_sum", n.in(0) * n.in(0))};
}
std::vector<Value> convert_reduce_l2(const NodeView& n) {
  const Value x = widened(n.in(0));
  return {in_dtype(tenon::sqrt(reduce(n, "reduce_sum", x * x)), n.in(0).dtype())};
}
std::vector<Value> convert_reduce_log_sum(const NodeView& n) {
  return {in_dtype(tenon::log(reduce(n, "reduce_sum", widened(n.in(0)))), n.in(0).dtype())};
}

Convert choice(std::string_view op) {
  return [op](const NodeView& n) {
    return n.make(op, {{"x", n.in(0)}},
                  {{"axis", n.integer("axis", 0)},
                   {"keep_dims", n.flag("keepdims", true)},
                   {"last", n.flag("select_last_index", false)}});
  };
}

Convert cumulation(std::string_view op) {
  return [op](const NodeView& n) {
    return n.make(op, {{"x", n.in(0)}, {"axis", n.in(1)}},
                  {{"exclusive", n.flag("exclusive", false)}, {"reverse", n.flag("reverse", false)}});
  };
}

}  // namespace

const Conversions& reduce_conversions() {
  static const Conversions conversions = {
      {"ReduceSum", reduction("reduce_sum")},
      {"ReduceMean", reduction("reduce_mean")},
      {"ReduceProd", reduction("reduce_prod")},
      {"ReduceMax", reduction("reduce_max")},
      {"ReduceMin", reduction("reduce_min")},
      {"ReduceL1", convert_reduce_l1},
      {"ReduceL2", convert_reduce_l2},
      {"ReduceLogSum", convert_reduce_log_sum},
      {"ReduceLogSumExp", reduction("reduce_log_sum_exp")},
      {"ReduceSumSquare", convert_reduce_sum_square},
      {"ArgMax", choice("arg_max")},
      {"ArgMin", choice("arg_min")},
      {"CumSum", cumulation("cumulative_sum")},
      {"CumProd", cumulation("cumulative_prod")},
  };
  return conversions;
}

}  // namespace tenon::onnx
