// loss.cpp — ONNX losses.
#include "ops/loss.h"

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/softmax.h"

namespace tenon::onnx {
namespace {

ClassLoss options(const NodeView& n) {
  using Reduction = ClassLoss::Reduction;
  ClassLoss options = {.weight = n.maybe(2)};
  if (n.has("ignore_index"))
    options.ignored = n.integer("ignore_index");
  const std::string reduction = n.text("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    throw user_error("{}: reduction is \"{}\", but must be none, sum or mean", n.op_type(), reduction);
  options.reduction = reduction == "none"  ? Reduction::None
                      : reduction == "sum" ? Reduction::Sum
                                           : Reduction::Mean;
  return options;
}

std::vector<Value> negative_log_likelihood_loss(const NodeView& n) {
  return {negative_log_likelihood(n.in(0), n.in(1), options(n))};
}

std::vector<Value> softmax_cross_entropy_loss(const NodeView& n) {
  const Value log_probabilities = log_softmax(n.in(0), 1);
  return {negative_log_likelihood(log_probabilities, n.in(1), options(n)), log_probabilities};
}

}  // namespace

const Conversions& loss_conversions() {
  static const Conversions conversions = {
      {"NegativeLogLikelihoodLoss", negative_log_likelihood_loss},
      {"SoftmaxCrossEntropyLoss", softmax_cross_entropy_loss},
  };
  return conversions;
}

}  // namespace tenon::onnx
