#include "ops/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "ops/activation_formulas.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/unary.h"
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

// --- the formulas as nodes ---

Value gelu_nodes(Value x) { return 0.5 * x * (1.0 + erf(x / std::numbers::sqrt2)); }

constexpr double kCubic = 0.044715;
const double kTanhScale = std::sqrt(2 / std::numbers::pi);

Value gelu_tanh_nodes(Value x) { return 0.5 * x * (1.0 + tanh(kTanhScale * (x + kCubic * (x * x * x)))); }

// max(x, 0) + log(1 + exp(-|x|)): neither overflows nor loses what is small beside x.
Value softplus_nodes(Value x) { return relu(x) + log(1.0 + exp(-abs(x))); }

Value hard_sigmoid_nodes(Value x, double alpha, double beta) {
  const auto number = [&](double value) { return scalar(x.graph(), x.dtype(), value); };
  return clip(alpha * x + beta, number(0), number(1));
}

Value is_negative(Value x) { return less(x, scalar(x.graph(), x.dtype(), 0)); }
Value is_positive(Value x) { return greater(x, scalar(x.graph(), x.dtype(), 0)); }

std::vector<Value> decompose_gelu(const Node& n) {
  using Nodes = Value (*)(Value);
  return {named<Nodes>(n, "approximate", {{"none", gelu_nodes}, {"tanh", gelu_tanh_nodes}})(n.in("x"))};
}
std::vector<Value> decompose_silu(const Node& n) {
  const Value x = n.in("x");
  const double alpha = n.attr("alpha");
  return {x * sigmoid(alpha == 1 ? x : alpha * x)};
}
std::vector<Value> decompose_softplus(const Node& n) { return {softplus_nodes(n.in("x"))}; }
std::vector<Value> decompose_mish(const Node& n) {
  const Value x = n.in("x");
  return {x * tanh(softplus_nodes(x))};
}
std::vector<Value> decompose_leaky_relu(const Node& n) {
  const Value x = n.in("x");
  return {where(is_negative(x), n.attr("alpha").as<double>() * x, x)};
}
// exp only of what is not positive, so that it cannot overflow in the branch that is not taken.
std::vector<Value> decompose_elu(const Node& n) {
  const Value x = n.in("x");
  const double alpha = n.attr("alpha"), scale = n.attr("scale"), input_scale = n.attr("input_scale");
  const Value below = exp(input_scale * minimum(x, scalar(x.graph(), x.dtype(), 0))) - 1.0;
  return {scale * where(is_positive(x), x, alpha * below)};
}
std::vector<Value> decompose_hard_sigmoid(const Node& n) {
  return {hard_sigmoid_nodes(n.in("x"), n.attr("alpha"), n.attr("beta"))};
}
std::vector<Value> decompose_hard_swish(const Node& n) {
  const Value x = n.in("x");
  return {x * hard_sigmoid_nodes(x, 1.0 / 6, 0.5)};
}

// --- gradients ---

// Φ(x) + x · φ(x)
Value gelu_derivative(Value x) {
  const Value normal = exp(-0.5 * (x * x)) * (1 / std::sqrt(2 * std::numbers::pi));
  return 0.5 * (1.0 + erf(x / std::numbers::sqrt2)) + x * normal;
}
Value gelu_tanh_derivative(Value x) {
  const Value t = tanh(kTanhScale * (x + kCubic * (x * x * x)));
  return 0.5 * (1.0 + t) + 0.5 * kTanhScale * x * (1.0 - t * t) * (1.0 + 3 * kCubic * (x * x));
}
std::vector<Operand> grad_gelu(const GradContext& n) {
  using Derivative = Value (*)(Value);
  const auto derivative =
      named<Derivative>(n.node(), "approximate", {{"none", gelu_derivative}, {"tanh", gelu_tanh_derivative}});
  return {{"x", n.dy() * derivative(n.in("x"))}};
}
std::vector<Operand> grad_silu(const GradContext& n) {
  const double alpha = n.attr("alpha");
  const Value gate = sigmoid(alpha * n.in("x"));
  return {{"x", n.dy() * (gate + alpha * n.out() * (1.0 - gate))}};
}
Value softplus_derivative(Value x, Value) { return sigmoid(x); }
Value mish_derivative(Value x, Value) {
  const Value t = tanh(softplus(x));
  return t + x * sigmoid(x) * (1.0 - t * t);
}
// At 0 the slope is alpha.
std::vector<Operand> grad_leaky_relu(const GradContext& n) {
  return {{"x", where(is_positive(n.in("x")), n.dy(), n.attr("alpha").as<double>() * n.dy())}};
}
// At 0 the slope is that from below. Below, y + scale · alpha = scale · alpha · exp(input_scale · x).
std::vector<Operand> grad_elu(const GradContext& n) {
  const double alpha = n.attr("alpha"), scale = n.attr("scale"), input_scale = n.attr("input_scale");
  const Value dy = n.dy();
  return {{"x", where(is_positive(n.in("x")), scale * dy, input_scale * dy * (n.out() + scale * alpha))}};
}
// At its kinks it is 0.
std::vector<Operand> grad_hard_sigmoid(const GradContext& n) {
  const Value y = n.out(), one = scalar(n.graph(), y.dtype(), 1);
  return {
      {"x", keep_where(logical_and(is_positive(y), less(y, one)), n.attr("alpha").as<double>() * n.dy())}};
}
// At -3 it is 0, at 3 it is 1.
std::vector<Operand> grad_hard_swish(const GradContext& n) {
  const Value x = n.in("x"), dy = n.dy(), nothing = scalar(n.graph(), x.dtype(), 0);
  const auto number = [&](double value) { return scalar(n.graph(), x.dtype(), value); };
  return {
      {"x", where(less_equal(x, number(-3)), nothing, where(less(x, number(3)), dy * (x / 3.0 + 0.5), dy))}};
}

// --- the declarations ---

Types infer_gelu(const Node& n) {
  gelu_formula(n);
  return same_as_x(n);
}

OpDef activation(std::string_view name, std::string_view doc, EvalFunction eval, GradFunction grad,
                 DecomposeFunction decompose, std::vector<AttributeDecl> attributes = {},
                 InferFunction infer = same_as_x) {
  return {.name = name,
          .doc = doc,
          .operands = {{"x", "T"}},
          .attributes = std::move(attributes),
          .results = {{"y", "T"}},
          .types = {{"T", Floats}},
          .traits = {.elementwise = true, .takes_unranked = true},
          .infer = infer,
          .eval = eval,
          .grad = grad,
          .decompose = decompose};
}

Value apply(std::string_view op, Value x, Attributes attributes = {}) {
  return x.graph().create(op, {{"x", x}}, std::move(attributes))->result();
}

}  // namespace

const Family& activation_ops() {
  using enum AttributeKind;
  static const Family ops = {
      activation(
          "gelu", "x · Φ(x), Φ the normal distribution function", eval_gelu, grad_gelu, decompose_gelu,
          {{"approximate", String, "none, or tanh: 0.5 x (1 + tanh(√(2/π) (x + 0.044715 x³)))", "none"}},
          infer_gelu),
      activation("silu", "x · sigmoid(alpha · x); with another alpha than 1 it is called swish", eval_silu,
                 grad_silu, decompose_silu, {{"alpha", Float, "the steepness", 1.0}}),
      activation("softplus", "log(1 + exp(x))", map_floats<softplus_of>, chain<softplus_derivative>,
                 decompose_softplus),
      activation("mish", "x · tanh(softplus(x))", map_floats<mish_of>, chain<mish_derivative>,
                 decompose_mish),
      activation("leaky_relu", "x, or alpha · x where x < 0", eval_leaky_relu, grad_leaky_relu,
                 decompose_leaky_relu, {{"alpha", Float, "the slope below zero", 0.01}}),
      activation(
          "elu", "scale · x, or scale · alpha · (exp(input_scale · x) - 1) where x ≤ 0", eval_elu, grad_elu,
          decompose_elu,
          {{"alpha", Float, "minus the limit at minus infinity, before scale", 1.0},
           {"scale", Float, "what all is multiplied with; not 1 in selu", 1.0},
           {"input_scale", Float, "what x is multiplied with in the exponent; 1 / alpha in celu", 1.0}}),
      activation("hard_sigmoid", "alpha · x + beta, limited to 0 … 1", eval_hard_sigmoid, grad_hard_sigmoid,
                 decompose_hard_sigmoid,
                 {{"alpha", Float, "the slope", 0.2}, {"beta", Float, "the value at zero", 0.5}}),
      activation("hard_swish", "x · hard_sigmoid(x) with alpha 1/6 and beta 1/2", map_floats<hard_swish_of>,
                 grad_hard_swish, decompose_hard_swish),
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
