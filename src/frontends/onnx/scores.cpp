#include "frontends/onnx/scores.h"

#include <numbers>

#include "base/error.h"
#include "frontends/onnx/vectors.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reduce.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

// A softmax in which scores of 0 count for nothing; where all are 0, the result is one half.
Value softmax_but_zero(Value scores) {
  Graph& graph = scores.graph();
  const Value greatest = reduce_max(scores, {-1}, Keep::Dims);
  const Value counts = greater(abs(scores), scalar(graph, scores.dtype(), 1e-7));
  const Value parts = where(counts, exp(scores - greatest), scores * exp(-greatest));
  const Value whole = reduce_sum(parts, {-1}, Keep::Dims);
  return where(equal(whole, scalar(graph, scores.dtype(), 0)), scalar(graph, scores.dtype(), 0.5),
               parts / whole);
}

// The inverse of the normal distribution, √2 · erf⁻¹(2p − 1), with Winitzki's approximation of erf⁻¹, which
// is what other engines compute.
Value probit(Value p) {
  constexpr double a = 0.147;
  const Value y = p * 2.0 - 1.0;
  const Value product = (1.0 - y) * (1.0 + y);
  const Value logarithm = log(product);
  const Value t = logarithm * 0.5 + 2 / (std::numbers::pi * a);
  const Value magnitude = sqrt(sqrt(t * t - logarithm * (1 / a)) - t);
  const Value zero = scalar(p.graph(), p.dtype(), 0);
  return where(equal(product, zero), zero, sign(y) * magnitude * std::numbers::sqrt2);
}

}  // namespace

Tensor class_labels(const NodeView& n, std::string_view integers, std::string_view strings) {
  if (n.has(integers) == n.has(strings))
    throw user_error("{}: it needs either {} or {}", n.op_type(), integers, strings);
  return n.has(integers) ? Tensor::of(n.integers(integers)) : string_vector(n.texts(strings));
}

Value transform_scores(const NodeView& n, Value scores, std::string_view transform) {
  if (transform == "NONE")
    return scores;
  if (transform == "LOGISTIC")
    return sigmoid(scores);
  if (transform == "SOFTMAX")
    return softmax(scores, -1);
  if (transform == "SOFTMAX_ZERO")
    return softmax_but_zero(scores);
  if (transform == "PROBIT")
    return probit(scores);
  throw user_error("{}: post_transform is \"{}\", which has no meaning", n.op_type(), transform);
}

}  // namespace tenon::onnx
