// training.cpp — the optimisers of ONNX's training domain: one update of any number of tensors.
#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/optimise.h"
#include "ops/select.h"

namespace tenon::onnx {
namespace {

// The inputs are a learning rate, an update count, then all tensors, all their gradients, and as many of each
// state the optimiser keeps. The outputs are all new tensors, then all new states. update(rate, count,
// {x, gradient, states…}) gives {new x, new states…}.
template <class F>
std::vector<Value> update_each(const NodeView& n, size_t states, F&& update) {
  const std::vector<Value> inputs = n.ins(2);
  const size_t kinds = 2 + states, tensors = inputs.size() / kinds;
  if (tensors * kinds != inputs.size() || tensors == 0)
    throw user_error("{}: {} tensors follow the update count, but it takes {} for each that is optimised",
                     n.op_type(), inputs.size(), kinds);
  std::vector<Value> outputs(tensors * (1 + states));
  for (size_t i = 0; i < tensors; ++i) {
    std::vector<Value> own;
    for (size_t kind = 0; kind < kinds; ++kind)
      own.push_back(inputs[kind * tensors + i]);
    const DType dtype = own.front().dtype();
    const std::vector<Value> results = update(in_dtype(n.in(0), dtype), in_dtype(n.in(1), dtype), own);
    for (size_t kind = 0; kind < results.size(); ++kind)
      outputs[kind * tensors + i] = results[kind];
  }
  return outputs;
}

Value number(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }

// The norm's gradient is added to that of the loss.
Value regularised(const std::vector<Value>& own, double coefficient) {
  return with_decay(own[1], own[0], coefficient);
}

std::vector<Value> convert_adagrad(const NodeView& n) {
  return update_each(n, 1, [&](Value rate, Value count, const std::vector<Value>& own) {
    const Value decayed = rate / (count * n.real("decay_factor", 0) + 1);
    return update_by_adagrad(own[0], regularised(own, n.real("norm_coefficient", 0)), own[2], decayed,
                             n.real("epsilon", 0));
  });
}

std::vector<Value> convert_adam(const NodeView& n) {
  const Moments options = {.beta1 = n.real("alpha", 0.9), .beta2 = n.real("beta", 0.999)};
  return update_each(n, 2, [&](Value rate, Value count, const std::vector<Value>& own) {
    const Corrections by = corrections(count, options);
    const Value step = where(greater(count, number(count, 0)), rate * by.root / by.average, rate);
    std::vector<Value> results =
        update_by_moments(own[0], regularised(own, n.real("norm_coefficient", 0)), own[2], own[3], step,
                          number(own[0], n.real("epsilon", 0)), options);
    results.front() = results.front() * (1 - n.real("norm_coefficient_post", 0));
    return results;
  });
}

std::vector<Value> convert_momentum(const NodeView& n) {
  const double beta = n.real("beta");
  const Momentum options = {.momentum = n.real("alpha"),
                            .nesterov = n.translate<bool>("mode", {{"standard", false}, {"nesterov", true}})};
  return update_each(n, 1, [&](Value rate, Value count, const std::vector<Value>& own) {
    const Value weight = where(greater(count, number(count, 0)), number(count, beta), number(count, 1));
    return update_by_momentum(own[0], regularised(own, n.real("norm_coefficient")), own[2], rate, weight,
                              options);
  });
}

}  // namespace

const Conversions& training_conversions() {
  constexpr std::string_view domain = "ai.onnx.preview.training";
  static const Conversions conversions = {{"Adagrad", convert_adagrad, domain},
                                          {"Adam", convert_adam, domain},
                                          {"Momentum", convert_momentum, domain}};
  return conversions;
}

}  // namespace tenon::onnx
