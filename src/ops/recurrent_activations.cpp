#include "ops/recurrent_activations.h"

#include <algorithm>
#include <cmath>

#include "ops/activation.h"
#include "ops/activation_formulas.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/gradient.h"
#include "ops/select.h"
#include "ops/unary.h"

namespace tenon {
namespace {

Value number(Value like, double value) { return scalar(like.graph(), like.dtype(), value); }

constexpr RecurrentActivation kActivations[] = {
    {"affine", 1, 0, [](double x, double a, double b) { return a * x + b; },
     [](Value x, double a, double b) { return a * x + b; }},
    {"elu", 1, 0, [](double x, double a, double) { return elu_of(x, a); },
     [](Value x, double a, double) { return elu(x, {.alpha = a}); }},
    {"hard_sigmoid", 0.2, 0.5, hard_sigmoid_of, hard_sigmoid},
    {"leaky_relu", 0.01, 0, [](double x, double a, double) { return leaky_relu_of(x, a); },
     [](Value x, double a, double) { return leaky_relu(x, a); }},
    {"relu", 0, 0, [](double x, double, double) { return x < 0 ? 0 : x; },
     [](Value x, double, double) { return relu(x); }},
    {"scaled_tanh", 1, 1, [](double x, double a, double b) { return a * std::tanh(b * x); },
     [](Value x, double a, double b) { return a * tanh(b * x); }},
    {"sigmoid", 0, 0, [](double x, double, double) { return sigmoid_of(x); },
     [](Value x, double, double) { return sigmoid(x); }},
    {"softplus", 0, 0, [](double x, double, double) { return softplus_of(x); },
     [](Value x, double, double) { return softplus(x); }},
    {"softsign", 0, 0, [](double x, double, double) { return x / (1 + std::abs(x)); },
     [](Value x, double, double) { return x / (1.0 + abs(x)); }},
    {"tanh", 0, 0, [](double x, double, double) { return std::tanh(x); },
     [](Value x, double, double) { return tanh(x); }},
    {"thresholded_relu", 1, 0, [](double x, double a, double) { return x > a ? x : 0; },
     [](Value x, double a, double) { return keep_where(greater(x, number(x, a)), x); }},
};

}  // namespace

double RecurrentFunction::operator()(double x) const {
  // Written so that NaN stays NaN.
  const double limited = x > clip ? clip : x < -clip ? -clip : x;
  return activation->formula(limited, alpha, beta);
}

Value RecurrentFunction::operator()(Value x) const {
  const Value limited = std::isinf(clip) ? x : tenon::clip(x, number(x, -clip), number(x, clip));
  return activation->nodes(limited, alpha, beta);
}

std::vector<RecurrentFunction> recurrent_functions(const Node& n, size_t per_direction, int64_t directions) {
  const std::vector<std::string>& names = n.attr("activations");
  const std::vector<double>&alphas = n.attr("alpha"), &betas = n.attr("beta");
  const size_t wanted = per_direction * static_cast<size_t>(directions);
  if (names.size() != per_direction && names.size() != wanted)
    throw user_error("{}: {} activations were given, but it takes {}{}", n.op().name, names.size(),
                     per_direction, wanted == per_direction ? "" : " for each direction, or for both");
  std::vector<RecurrentFunction> all;
  for (size_t i = 0; i < wanted; ++i) {
    const size_t k = i % names.size();
    const auto it = std::find_if(std::begin(kActivations), std::end(kActivations),
                                 [&](const RecurrentActivation& a) { return a.name == names[k]; });
    if (it == std::end(kActivations)) {
      std::vector<std::string_view> known;
      for (const RecurrentActivation& activation : kActivations)
        known.push_back(activation.name);
      throw user_error("{}: there is no activation {}\n  hint: it may be {}", n.op().name, names[k],
                       fmt::join(known, ", "));
    }
    all.push_back({it, k < alphas.size() ? alphas[k] : it->alpha, k < betas.size() ? betas[k] : it->beta,
                   n.attr("clip")});
  }
  return all;
}

}  // namespace tenon
