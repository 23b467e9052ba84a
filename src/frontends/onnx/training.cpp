// training.cpp — the optimisers of ONNX's training domain: one update of any number of tensors.
#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/select.h"
#include "ops/unary.h"

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

std::vector<Value> convert_adagrad(const NodeView& n) {
  return update_each(n, 1, [&](Value rate, Value count, const std::vector<Value>& own) {
    const Value x = own[0], gradient = x * n.real("norm_coefficient", 0) + own[1];
    const Value squares = own[2] + gradient * gradient;
    const Value step = rate / (count * n.real("decay_factor", 0) + 1);
    return std::vector<Value>{x - step * gradient / (tenon::sqrt(squares) + n.real("epsilon", 0)), squares};
  });
}

std::vector<Value> convert_adam(const NodeView& n) {
  const double alpha = n.real("alpha", 0.9), beta = n.real("beta", 0.999);
  return update_each(n, 2, [&](Value rate, Value count, const std::vector<Value>& own) {
    const Value x = own[0], gradient = x * n.real("norm_coefficient", 0) + own[1];
    const Value average = own[2] * alpha + gradient * (1 - alpha);
    const Value squares = own[3] * beta + gradient * gradient * (1 - beta);
    const Value corrected = rate * tenon::sqrt(1 - tenon::pow(number(count, beta), count)) /
                            (1 - tenon::pow(number(count, alpha), count));
    const Value step = where(greater(count, number(count, 0)), corrected, rate);
    const Value moved = x - step * average / (tenon::sqrt(squares) + n.real("epsilon", 0));
    return std::vector<Value>{moved * (1 - n.real("norm_coefficient_post", 0)), average, squares};
  });
}

std::vector<Value> convert_momentum(const NodeView& n) {
  const double alpha = n.real("alpha"), beta = n.real("beta");
  const bool nesterov = n.translate<bool>("mode", {{"standard", false}, {"nesterov", true}});
  return update_each(n, 1, [&](Value rate, Value count, const std::vector<Value>& own) {
    const Value x = own[0], gradient = x * n.real("norm_coefficient") + own[1];
    const Value weight = where(greater(count, number(count, 0)), number(count, beta), number(count, 1));
    const Value velocity = own[2] * alpha + weight * gradient;
    const Value direction = nesterov ? gradient + velocity * alpha : velocity;
    return std::vector<Value>{x - rate * direction, velocity};
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
