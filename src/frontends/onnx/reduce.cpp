// reduce.cpp — ONNX reductions.
#include "ops/reduce.h"

#include <numeric>

#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

// The axes are an attribute in older opsets and an input in newer ones (from 13 for ReduceSum, from 18 for
// the rest). No axes at all means every axis, or none when `noop_with_empty_axes` says so.
Value reduce(const NodeView& n, std::string_view op, Value x) {
  const bool keep = n.flag("keepdims", true);
  const Value given = n.maybe(1);
  const auto known = given ? given.known_ints() : n.integers("axes", {});
  if (known && known->empty()) {
    if (n.flag("noop_with_empty_axes", false))
      return x;
    std::vector<int64_t> every(static_cast<size_t>(x.rank()));
    std::iota(every.begin(), every.end(), 0);
    return n.make(op, {{"x", x}}, {{"axes", every}, {"keep_dims", keep}}).front();
  }
  if (known)
    return n.make(op, {{"x", x}}, {{"axes", *known}, {"keep_dims", keep}}).front();
  return n.make(op, {{"x", x}, {"axes", given}}, {{"keep_dims", keep}}).front();
}

std::vector<Value> sum(const NodeView& n) { return {reduce(n, "reduce_sum", n.in(0))}; }
std::vector<Value> mean(const NodeView& n) { return {reduce(n, "reduce_mean", n.in(0))}; }
std::vector<Value> product(const NodeView& n) { return {reduce(n, "reduce_prod", n.in(0))}; }
std::vector<Value> greatest(const NodeView& n) { return {reduce(n, "reduce_max", n.in(0))}; }
std::vector<Value> least(const NodeView& n) { return {reduce(n, "reduce_min", n.in(0))}; }
std::vector<Value> sum_of_magnitudes(const NodeView& n) {
  return {reduce(n, "reduce_sum", tenon::abs(n.in(0)))};
}
std::vector<Value> sum_of_squares(const NodeView& n) { return {reduce(n, "reduce_sum", n.in(0) * n.in(0))}; }
std::vector<Value> length(const NodeView& n) {
  return {tenon::sqrt(reduce(n, "reduce_sum", n.in(0) * n.in(0)))};
}
std::vector<Value> log_sum(const NodeView& n) { return {tenon::log(reduce(n, "reduce_sum", n.in(0)))}; }

}  // namespace

const Conversions& reduce_conversions() {
  static const Conversions conversions = {
      {"ReduceSum", sum},
      {"ReduceMean", mean},
      {"ReduceProd", product},
      {"ReduceMax", greatest},
      {"ReduceMin", least},
      {"ReduceL1", sum_of_magnitudes},
      {"ReduceSumSquare", sum_of_squares},
      {"ReduceL2", length},
      {"ReduceLogSum", log_sum},
  };
  return conversions;
}

}  // namespace tenon::onnx
