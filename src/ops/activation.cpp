#include "ops/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/activation_formulas.h"
#include "ops/elements.h"
#include "ops/shapes.h"
#include "ops/words.h"

namespace tenon {
namespace {

// --- the formulas ---

double mish_of(double x) { return x * std::tanh(softplus_of(x)); }

double gelu_of(double x) { return 0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)); }

// The usual approximation of gelu, with √(2/π).
double gelu_tanh_of(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

double hard_swish_of(double x) { return x * hard_sigmoid_of(x, 1.0 / 6, 0.5); }

// --- eval of those with attributes ---

using Formula = double (*)(double);

Formula gelu_formula(const Node& n) {
  return named<Formula>(n, "approximate", {{"none", gelu_of}, {"tanh", gelu_tanh_of}});
}

Data eval_gelu(const Call& c) { return map_floats(c, gelu_formula(c.node())); }

Data eval_silu(const Call& c) {
  const double alpha = c.attr("alpha");
  return map_floats(c, [=](double x) { return x * sigmoid_of(alpha * x); });
}

Data eval_leaky_relu(const Call& c) {
  const double alpha = c.attr("alpha");
  return map_floats(c, [=](double x) { return leaky_relu_of(x, alpha); });
}

Data eval_elu(const Call& c) {
  const double alpha = c.attr("alpha"), scale = c.attr("scale"), input_scale = c.attr("input_scale");
  return map_floats(c, [=](double x) { return scale * (x > 0 ? x : alpha * std::expm1(input_scale * x)); });
}

Data eval_hard_sigmoid(const Call& c) {
  const double alpha = c.attr("alpha"), beta = c.attr("beta");
  return map_floats(c, [=](double x) { return hard_sigmoid_of(x, alpha, beta); });
}

// --- the declarations ---

Types infer_gelu(const Node& n) {
  gelu_formula(n);
  return same_as_x(n);
}

OpDef activation(std::string_view name, std::string_view doc, EvalFunction eval,
                 std::vector<AttributeDecl> attributes = {}, InferFunction infer = same_as_x) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}},
          .attributes = std::move(attributes),
          .results = {{"y", "T"}},
          .types = {{"T", Floats}},
          .traits = {.elementwise = true, .takes_unranked = true},
          .infer = infer,
          .eval = eval};
}

Value apply(std::string_view op, Value x, Attributes attributes = {}) {
  return x.graph().create(op, {{"x", x}}, std::move(attributes))->result();
}

}  // namespace

const Family& activation_ops() {
  using enum AttributeKind;
  static const Family ops = {
      activation(
          "gelu", "x · Φ(x), Φ the normal distribution function", eval_gelu,
          {{"approximate", String, "none, or tanh: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))", "none"}},
          infer_gelu),
      activation("silu", "x · sigmoid(alpha · x); with another alpha than 1 it is called swish", eval_silu,
                 {{"alpha", Float, "the steepness", 1.0}}),
      activation("softplus", "log(1 + exp(x))", map_floats<softplus_of>),
      activation("mish", "x · tanh(softplus(x))", map_floats<mish_of>),
      activation("leaky_relu", "x, or alpha · x where x < 0", eval_leaky_relu,
                 {{"alpha", Float, "the slope below zero", 0.01}}),
      activation(
          "elu", "scale · x, or scale · alpha · (exp(input_scale · x) - 1) where x ≤ 0", eval_elu,
          {{"alpha", Float, "minus the limit at minus infinity, before scale", 1.0},
           {"scale", Float, "what all is multiplied with; not 1 in selu", 1.0},
           {"input_scale", Float, "what x is multiplied with in the exponent; 1 / alpha in celu", 1.0}}),
      activation("hard_sigmoid", "alpha · x + beta, limited to 0 … 1", eval_hard_sigmoid,
                 {{"alpha", Float, "the slope", 0.2}, {"beta", Float, "the value at zero", 0.5}}),
      activation("hard_swish", "x · hard_sigmoid(x) with alpha 1/6 and beta 1/2", map_floats<hard_swish_of>),
  };
  return ops;
}

Value gelu(Value x) { return apply("gelu", x); }
Value gelu_tanh(Value x) { return apply("gelu", x, {{"approximate", "tanh"}}); }
Value silu(Value x, double alpha) { return apply("silu", x, {{"alpha", alpha}}); }
Value softplus(Value x) { return apply("softplus", x); }
Value mish(Value x) { return apply("mish", x); }
Value leaky_relu(Value x, double alpha) { return apply("leaky_relu", x, {{"alpha", alpha}}); }
Value hard_sigmoid(Value x, double alpha, double beta) {
  return apply("hard_sigmoid", x, {{"alpha", alpha}, {"beta", beta}});
}
Value hard_swish(Value x) { return apply("hard_swish", x); }
Value elu(Value x, const EluScales& scales) {
  return apply("elu", x,
               {{"alpha", scales.alpha}, {"scale", scales.scale}, {"input_scale", scales.input_scale}});
}

}  // namespace tenon
