// recurrent_activations.h — the activation functions of recurrent layers, of numbers and as nodes.
#pragma once

#include "ir/graph.h"

namespace tenon {

struct RecurrentActivation {
  std::string_view name;
  double alpha, beta;  // where none are given
  double (*formula)(double x, double alpha, double beta);
  Value (*nodes)(Value x, double alpha, double beta);
};

// An activation with its parameters, of a value limited to ±clip.
struct RecurrentFunction {
  const RecurrentActivation* activation;
  double alpha, beta, clip;

  double operator()(double x) const;
  Value operator()(Value x) const;
};

// Those that the attributes of a recurrent layer name: `per_direction` for each of `directions` in turn.
std::vector<RecurrentFunction> recurrent_functions(const Node& n, size_t per_direction, int64_t directions);

}  // namespace tenon
