// activation_formulas.h — activation functions of one number, which are ops and also stand in recurrent
// layers.
#pragma once

#include <algorithm>
#include <cmath>

namespace tenon {

// For large |x| the naive formula still goes to 0 and 1, since exp gives inf and 0 there.
inline double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

// log(1 + exp(x)), written so that exp does not overflow for large x.
inline double softplus_of(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

inline double leaky_relu_of(double x, double slope) { return x < 0 ? slope * x : x; }

inline double elu_of(double x, double alpha) { return x > 0 ? x : alpha * std::expm1(x); }

inline double hard_sigmoid_of(double x, double alpha, double beta) {
  return std::clamp(alpha * x + beta, 0.0, 1.0);
}

}  // namespace tenon
