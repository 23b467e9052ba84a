#include "ops/optimise.h"

#include "ops/binary.h"
#include "ops/data.h"
#include "ops/unary.h"

namespace tenon {
namespace {

Value mixed(Value average, Value x, double beta) { return average * beta + x * (1 - beta); }

}  // namespace

Value with_decay(Value gradient, Value x, double decay) {
  return decay == 0 ? gradient : x * decay + gradient;
}

Value update_by_gradient(Value x, Value gradient, Value rate) { return x - rate * gradient; }

std::vector<Value> update_by_momentum(Value x, Value gradient, Value velocity, Value rate, Value weight,
                                      const Momentum& options) {
  const Value next = velocity * options.momentum + weight * gradient;
  const Value direction = options.nesterov ? gradient + next * options.momentum : next;
  return {update_by_gradient(x, direction, rate), next};
}

std::vector<Value> update_by_moments(Value x, Value gradient, Value average, Value squares, Value step,
                                     Value epsilon, const Moments& options) {
  const Value next_average = mixed(average, gradient, options.beta1);
  const Value next_squares = squares * options.beta2 + gradient * gradient * (1 - options.beta2);
  return {x - step * next_average / (sqrt(next_squares) + epsilon), next_average, next_squares};
}

Corrections corrections(Value count, const Moments& options) {
  const auto correction = [&](double beta) {
    return 1 - pow(scalar(count.graph(), count.dtype(), beta), count);
  };
  return {.average = correction(options.beta1), .root = sqrt(correction(options.beta2))};
}

std::vector<Value> update_by_adagrad(Value x, Value gradient, Value squares, Value rate, double epsilon) {
  const Value next = squares + gradient * gradient;
  return {x - rate * gradient / (sqrt(next) + epsilon), next};
}

std::vector<Value> update_by_lion(Value x, Value gradient, Value average, Value rate,
                                  const Moments& options) {
  return {update_by_gradient(x, sign(mixed(average, gradient, options.beta1)), rate),
          mixed(average, gradient, options.beta2)};
}

}  // namespace tenon
