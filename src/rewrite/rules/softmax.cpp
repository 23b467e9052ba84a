// softmax.cpp — softmax, its logarithm and log-sum-exp, written out in exps and sums.
#include "ops/softmax.h"

#include "ops/binary.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "rewrite/rules/rules.h"
#include "rewrite/rules/written_out.h"

namespace tenon {
namespace {

// The axes that the first reduction of a region has, from the front; none without one.
std::vector<int64_t> axes_of(const UnaryRegion& region) {
  const int64_t rank = region.x.rank();
  for (const Node* node : region.nodes) {
    std::vector<int64_t> axes;
    if (node->is("softmax") || node->is("log_softmax"))
      axes = {node->attr("axis").as<int64_t>()};
    else if (node->is("reduce_sum") || node->is("reduce_log_sum_exp"))
      axes = node->attr("axes").as<std::vector<int64_t>>();
    for (int64_t& axis : axes)
      axis += axis < 0 ? rank : 0;
    if (!axes.empty())
      return axes;
  }
  return {};
}

Solver solver_along_axis(Value (*make)(Value, int64_t)) {
  return [=](const UnaryRegion& region) -> std::optional<Function> {
    if (region.x.type() != region.root.type() || !region.x.shape().ranked() || !region.fixed.empty())
      return std::nullopt;
    const std::vector<int64_t> axes = axes_of(region);
    if (axes.size() != 1)
      return std::nullopt;
    const Function function = [=](Value x, const std::vector<Value>&) {
      return make(x, axes.front() - x.rank());
    };
    return computes_along(region, axes, function) ? std::optional(function) : std::nullopt;
  };
}

std::optional<Function> solve_log_sum_exp(const UnaryRegion& region) {
  if (!region.x.shape().ranked() || !region.root.shape().ranked() || !region.fixed.empty())
    return std::nullopt;
  const std::vector<int64_t> axes = axes_of(region);
  if (axes.empty())
    return std::nullopt;
  const Keep keep = region.root.rank() == region.x.rank() ? Keep::Dims : Keep::None;
  const Function function = [=](Value x, const std::vector<Value>&) {
    return reduce_log_sum_exp(x, axes, keep);
  };
  return computes_along(region, axes, function) ? std::optional(function) : std::nullopt;
}

Rules make_rules() {
  const Pattern v = any("v"), e = unary("exp", any("scores")),
                product = op("matmul", {{"a", e}, {"b", v}}).with("transpose_a", false).once(),
                sums = op("reduce_sum", {{"x", e}}).with("keep_dims", true);
  const auto sums_rows = [=](const Match& m) {
    const std::vector<int64_t> axes = m.node(sums).attr("axes");
    return m[e].shape().ranked() && axes.size() == 1 && (axes[0] == -1 || axes[0] == m[e].rank() - 1);
  };
  return {
      // Before the product it is a softmax.
      {.name = "divide-before-product",
       .match = product / sums,
       .replace = {"matmul(exp(scores) / sums, v)",
                   [=](const Match& m) {
                     return matmul(m[e] / m[sums], m[v], {.b = m.node(product).attr("transpose_b")});
                   }},
       .when = {is_ordinary_float(e), {"the sums are along the last axis", sums_rows}},
       .numerics = Numerics::Reassociates,
       .fires = "(%x: T[n,8], %v: T[8,3]) { %e = exp(%x) %p = matmul(%e, %v) "
                "%s = reduce_sum(%e, axes=[-1], keep_dims=true) %y = div(%p, %s) return %y }",
       .stays = "(%x: T[8,8], %v: T[8,8]) { %e = exp(%x) %p = matmul(%e, %v) "
                "%s = reduce_sum(%e, axes=[0], keep_dims=true) %y = div(%p, %s) return %y }"},
      written_out(
          "softmax", {"exp", "softmax"}, "softmax(x)", solver_along_axis(softmax),
          "(%x: T[n,8]) { %m = reduce_max(%x, axes=[-1], keep_dims=true) %0 = sub(%x, %m) "
          "%1 = exp(%0) %2 = reduce_sum(%1, axes=[-1], keep_dims=true) %y = div(%1, %2) return %y }",
          "(%x: T[n,8]) { %m = reduce_max(%x, axes=[-1], keep_dims=true) %0 = sub(%x, %m) "
          "%1 = exp(%0) %2 = reduce_mean(%1, axes=[-1], keep_dims=true) %y = div(%1, %2) return %y }"),
      written_out("log-softmax", {"log", "reduce_log_sum_exp", "log_softmax"}, "log_softmax(x)",
                  solver_along_axis(log_softmax),
                  "(%x: T[n,8]) { %0 = softmax(%x, axis=1) %y = log(%0) return %y }",
                  "(%x: T[n,8]) { %e = constant(value=T[] {0.0001}) %0 = softmax(%x, axis=1) "
                  "%1 = add(%0, %e) %y = log(%1) return %y }"),
      written_out("log-sum-exp", {"log", "reduce_log_sum_exp"}, "reduce_log_sum_exp(x)", solve_log_sum_exp,
                  "(%x: T[n,8]) { %0 = exp(%x) %1 = reduce_sum(%0, axes=[1]) %y = log(%1) return %y }",
                  "(%x: T[n,8]) { %0 = exp(%x) %1 = reduce_mean(%0, axes=[1]) %y = log(%1) return %y }"),
  };
}

}  // namespace

const Rules& softmax_rules() {
  static const Rules rules = make_rules();
  return rules;
}

}  // namespace tenon
