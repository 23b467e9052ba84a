// loss.cpp — PyTorch's losses, and their gradients.
#include "ops/loss.h"

#include <cmath>

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gather.h"
#include "ops/gradient.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/softmax.h"
#include "ops/unary.h"

namespace tenon::torch {
namespace {

enum class Reduction : int64_t { None, Mean, Sum };

Reduction reduction_of(const NodeView& n) {
  const int64_t number = n.integer("reduction", 1);
  if (number < 0 || number > 2)
    throw user_error("{}: reduction is {}", n.op(), number);
  return static_cast<Reduction>(number);
}

std::vector<Value> reduced(const NodeView& n, Value loss) {
  const Reduction reduction = reduction_of(n);
  if (reduction == Reduction::None || n.rank_of(loss) == 0)
    return {loss};
  const std::vector<int64_t> all = axes_between(0, loss.rank());
  return {reduction == Reduction::Mean ? reduce_mean(loss, all) : reduce_sum(loss, all)};
}

// --- of the difference between what is and what should be

struct Pair {
  Value x, target;

  explicit Pair(const NodeView& n) : x(n.tensor("self")), target(n.tensor("target")) {
    const DType dtype = result_type({x, target});
    x = in_dtype(x, dtype);
    target = in_dtype(target, dtype);
  }
  Value difference() const { return x - target; }
};

std::vector<Value> convert_mse(const NodeView& n) {
  const Value difference = Pair(n).difference();
  return reduced(n, difference * difference);
}

// Half the square of what is less than delta, and beyond that a line; `scale` times that.
std::vector<Value> huber(const NodeView& n, double delta, double scale) {
  const Value distance = abs(Pair(n).difference());
  const Value line = (distance - 0.5 * delta) * (delta * scale);
  if (delta == 0)
    return reduced(n, distance * scale);
  const Value parabola = distance * distance * (0.5 * scale);
  return reduced(n, where(less(distance, scalar(n.graph(), distance.dtype(), delta)), parabola, line));
}
std::vector<Value> convert_huber(const NodeView& n) { return huber(n, n.real("delta", 1), 1); }
std::vector<Value> convert_smooth_l1(const NodeView& n) {
  const double beta = n.real("beta", 1);
  return huber(n, beta, beta == 0 ? 1 : 1 / beta);
}

// Logarithms are -100 at least.
std::vector<Value> convert_binary_cross_entropy(const NodeView& n) {
  const Pair pair(n);
  const Value least = n.number(pair.x.dtype(), -100);
  const auto logarithm = [&](Value x) { return maximum(log(x), least); };
  Value loss = -(pair.target * logarithm(pair.x) + (1.0 - pair.target) * logarithm(1.0 - pair.x));
  if (const Value weight = n.maybe_tensor("weight"))
    loss = loss * weight;
  return reduced(n, loss);
}
// Where it is -100, PyTorch's gradient goes on: (x - target) / max((1 - x) x, 1e-12).
std::vector<Value> convert_binary_cross_entropy_backward(const NodeView& n) {
  const Pair pair(n);
  const Value slope = pair.difference() / maximum((1.0 - pair.x) * pair.x, n.number(pair.x.dtype(), 1e-12));
  Value dx = n.tensor("grad_output") * slope;
  if (const Value weight = n.maybe_tensor("weight"))
    dx = dx * weight;
  return {reduction_of(n) == Reduction::Mean ? dx / count_along(pair.x, axes_between(0, n.rank_of(pair.x)))
                                             : dx};
}

std::vector<Value> convert_binary_cross_entropy_with_logits(const NodeView& n) {
  const Pair pair(n);
  Value loss = binary_cross_entropy_with_logits(pair.x, pair.target, n.maybe_tensor("pos_weight"));
  if (const Value weight = n.maybe_tensor("weight"))
    loss = loss * weight;
  return reduced(n, loss);
}

std::vector<Value> convert_l1(const NodeView& n) { return reduced(n, abs(Pair(n).difference())); }

// target · (log(target) - x), which is 0 where the target is
std::vector<Value> convert_kl_div(const NodeView& n) {
  const Pair pair(n);
  if (n.flag("log_target", false))
    return reduced(n, exp(pair.target) * (pair.target - pair.x));
  const Value none = equal(pair.target, n.number(pair.x.dtype(), 0));
  const Value logarithm = log(where(none, n.number(pair.x.dtype(), 1), pair.target));
  return reduced(n, pair.target * (logarithm - pair.x));
}

// --- of classes

// The weight of each target, and where it does not count 0; and the targets, where they do not count 0.
struct Targets {
  Value classes, weight;

  Targets(const NodeView& n, Value x) {
    classes = n.tensor("target");
    const Value counts = logical_not(equal(classes, ignored(n)));
    classes = where(counts, classes, n.number(classes.dtype(), 0));
    const Value weights = n.maybe_tensor("weight");
    weight = weights ? gather(weights, classes, 0) : broadcast_to(n.number(x.dtype(), 1), shape_of(classes));
    weight = keep_where(counts, weight);
  }

  static Value ignored(const NodeView& n) {
    return constant(n.graph(), Tensor::scalar(n.integer("ignore_index", -100)));
  }
};

// -x[i, target[i, …], …] · weight[target[i, …]], and the sum of the weights.
std::vector<Value> convert_nll_loss(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t axis = n.rank_of(x) == 1 ? 0 : 1;
  const Targets targets(n, x);
  const Value index = unsqueeze(targets.classes, {axis});
  const Value loss = -squeeze(gather_elements(x, index, axis), {axis}) * targets.weight;
  const Reduction reduction = reduction_of(n);
  const std::vector<int64_t> all = axes_between(0, n.rank_of(loss));
  const auto total = [&](Value each) { return each.rank() == 0 ? each : reduce_sum(each, all); };
  if (reduction == Reduction::None)
    return {loss, n.number(x.dtype(), 0)};
  const Value weight = total(targets.weight);
  return {reduction == Reduction::Mean ? total(loss) / weight : total(loss), weight};
}
// The weights are no function of x.
std::vector<Value> convert_nll_loss_backward(const NodeView& n) {
  n.ignore("total_weight");
  return gradients(n, convert_nll_loss, {{"self", n.tensor("self")}}, {n.tensor("grad_output")});
}

// Of logits. Targets are classes, or probabilities of all of them.
std::vector<Value> convert_cross_entropy(const NodeView& n) {
  const Value x = n.tensor("self"), target = n.tensor("target");
  const int64_t axis = n.rank_of(x) == 1 ? 0 : 1;
  const double smoothing = n.real("label_smoothing", 0);
  const Value logarithms = log_softmax(x, axis), weight = n.maybe_tensor("weight");
  if (!is_float(target.dtype()) && smoothing == 0)
    return {convert_nll_loss(NodeView(n, logarithms)).front()};
  if (!is_float(target.dtype()))
    throw unsupported("{}: label_smoothing of classes", n.op());
  n.ignore("ignore_index");
  Value wanted = target;
  if (smoothing != 0)
    wanted = wanted * (1 - smoothing) + smoothing / count_along(x, {axis});
  Value terms = logarithms * wanted;
  if (weight)
    terms = terms * (x.rank() > 1 ? unsqueeze(weight, axes_between(1, x.rank() - 1)) : weight);
  const Value loss = -reduce_sum(terms, {axis});
  if (reduction_of(n) != Reduction::Mean || loss.rank() == 0)
    return reduced(n, loss);
  const std::vector<int64_t> all = axes_between(0, loss.rank());
  return {reduce_sum(loss, all) / count_along(loss, all)};
}
std::vector<Value> convert_nll_loss_alone(const NodeView& n) { return {convert_nll_loss(n).front()}; }

}  // namespace

const Conversions& loss_conversions() {
  static const Conversions conversions = {
      {"binary_cross_entropy", convert_binary_cross_entropy},
      {"binary_cross_entropy_backward", convert_binary_cross_entropy_backward},
      {"binary_cross_entropy_with_logits", convert_binary_cross_entropy_with_logits},
      {"cross_entropy_loss", convert_cross_entropy},
      {"huber_loss", convert_huber},
      {"huber_loss_backward", gradient_of(convert_huber)},
      {"kl_div", convert_kl_div},
      {"l1_loss", convert_l1},
      {"mse_loss", convert_mse},
      {"mse_loss_backward", gradient_of(convert_mse)},
      {"nll_loss", convert_nll_loss_alone},
      {"nll_loss2d", convert_nll_loss_alone},
      {"nll_loss_nd", convert_nll_loss_alone},
      {"nll_loss2d_backward", convert_nll_loss_backward},
      {"nll_loss2d_forward", convert_nll_loss},
      {"nll_loss_backward", convert_nll_loss_backward},
      {"nll_loss_forward", convert_nll_loss},
      {"smooth_l1_loss", convert_smooth_l1},
      {"smooth_l1_loss_backward", gradient_of(convert_smooth_l1)},
  };
  return conversions;
}

}  // namespace tenon::torch
