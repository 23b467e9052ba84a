#include "ops/loss.h"

#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon {

Value negative_log_likelihood(Value log_probabilities, Value target, const ClassLoss& options) {
  using Reduction = ClassLoss::Reduction;
  Graph& graph = target.graph();
  const Value zero = scalar(graph, log_probabilities.dtype(), 0);
  // An ignored target may be no class at all: class 0 is read in its place, and does not count.
  Value classes = target, ignored;
  if (options.ignored) {
    const std::vector<int64_t> value = {*options.ignored};
    ignored = equal(target, constant(graph, narrow<int64_t>(target.dtype(), {}, value)));
    classes = where(ignored, scalar(graph, target.dtype(), 0), target);
  }
  Value loss = -squeeze(gather_elements(log_probabilities, unsqueeze(classes, {1}), 1), {1});
  Value weight;
  if (options.weight)
    weight = gather(options.weight, classes, 0);
  else if (ignored)
    weight = scalar(graph, log_probabilities.dtype(), 1);
  if (ignored) {
    weight = where(ignored, zero, weight);
    loss = where(ignored, zero, loss);
  }
  if (options.weight)
    loss = loss * weight;
  if (options.reduction == Reduction::None)
    return loss;
  const auto flat = [](Value value) { return reshape(value, {-1}); };
  if (options.reduction == Reduction::Mean && !weight)
    return reduce_mean(flat(loss), {0});
  const Value total = reduce_sum(flat(loss), {0});
  return options.reduction == Reduction::Sum ? total : total / reduce_sum(flat(weight), {0});
}

Value cross_entropy(Value logits, Value target, const CrossEntropy& options) {
  Value logarithms = log_softmax(logits, 1);
  if (options.smoothing != 0)  // so that what is taken at the target has a share of all classes
    logarithms =
        logarithms * (1 - options.smoothing) + reduce_mean(logarithms, {1}, Keep::Dims) * options.smoothing;
  return negative_log_likelihood(logarithms, target,
                                 {.ignored = options.ignored, .reduction = options.reduction});
}

Value binary_cross_entropy_with_logits(Value logits, Value target, Value positive_weight) {
  const Value log_of_none = softplus(-logits);  // -log(sigmoid(logits))
  const Value weighted =
      positive_weight ? (1.0 + (positive_weight - 1.0) * target) * log_of_none : log_of_none;
  return (1.0 - target) * logits + weighted;
}

}  // namespace tenon
