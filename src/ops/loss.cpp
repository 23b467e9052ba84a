#include "ops/loss.h"

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
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

}  // namespace tenon
