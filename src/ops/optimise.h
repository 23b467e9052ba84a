// optimise.h — one update of a tensor by its gradient, as optimisers define it.
//
// Each formula gives the next value of the tensor, then those of what the optimiser keeps for it. Rates and
// other numbers that vary are scalars of the tensor's dtype.
#pragma once

#include "ir/graph.h"

namespace tenon {

// gradient + decay · x; the gradient itself where there is no decay.
Value with_decay(Value gradient, Value x, double decay);

// x - rate · gradient
Value update_by_gradient(Value x, Value gradient, Value rate);

// velocity' = momentum · velocity + weight · gradient, x' = x - rate · velocity'. Nesterov's method goes on
// by momentum · velocity' + gradient instead.
struct Momentum {
  double momentum = 0;
  bool nesterov = false;
};
std::vector<Value> update_by_momentum(Value x, Value gradient, Value velocity, Value rate, Value weight,
                                      const Momentum& options);

// average' = β₁ · average + (1 - β₁) · gradient, squares' = β₂ · squares + (1 - β₂) · gradient²,
// x' = x - step · average' / (√squares' + epsilon)
struct Moments {
  double beta1 = 0.9, beta2 = 0.999;
};
std::vector<Value> update_by_moments(Value x, Value gradient, Value average, Value squares, Value step,
                                     Value epsilon, const Moments& options);
// What both moments began with, zeros, is corrected by these, after `count` updates: 1 - β₁^count for the
// average, √(1 - β₂^count) for the root of the squares. The dtype is that of the count.
struct Corrections {
  Value average, root;
};
Corrections corrections(Value count, const Moments& options);

// squares' = squares + gradient², x' = x - rate · gradient / (√squares' + epsilon)
std::vector<Value> update_by_adagrad(Value x, Value gradient, Value squares, Value rate, double epsilon);

// x' = x - rate · sign(β₁ · average + (1 - β₁) · gradient), average' = β₂ · average + (1 - β₂) · gradient
std::vector<Value> update_by_lion(Value x, Value gradient, Value average, Value rate, const Moments& options);

}  // namespace tenon
