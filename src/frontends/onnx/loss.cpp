// loss.cpp — ONNX losses.
#include "ops/loss.h"

#include "frontends/onnx/conversions.h"
#include "ops/softmax.h"

namespace tenon::onnx {
namespace {

ClassLoss read_options(const NodeView& n) {
  using Reduction = ClassLoss::Reduction;
  ClassLoss options = {.weight = n.maybe(2)};
  if (n.has("ignore_index"))
    options.ignored = n.integer("ignore_index");
  options.reduction = n.translate<Reduction>(
      "reduction", "mean", {{"none", Reduction::None}, {"sum", Reduction::Sum}, {"mean", Reduction::Mean}});
  return options;
}

std::vector<Value> convert_negative_log_likelihood_loss(const NodeView& n) {
  return {negative_log_likelihood(n.in(0), n.in(1), read_options(n))};
}

std::vector<Value> convert_softmax_cross_entropy_loss(const NodeView& n) {
  const Value log_probabilities = log_softmax(n.in(0), 1);
  return {negative_log_likelihood(log_probabilities, n.in(1), read_options(n)), log_probabilities};
}

}  // namespace

const Conversions& loss_conversions() {
  static const Conversions conversions = {
      {"NegativeLogLikelihoodLoss", convert_negative_log_likelihood_loss},
      {"SoftmaxCrossEntropyLoss", convert_softmax_cross_entropy_loss},
  };
  return conversions;
}

}  // namespace tenon::onnx
