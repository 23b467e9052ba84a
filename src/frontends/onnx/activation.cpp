// activation.cpp — ONNX activation functions.
#include "ops/activation.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

std::vector<Value> convert_gelu(const NodeView& n) {
  return n.make("gelu", {{"x", n.in(0)}}, {{"approximate", n.text("approximate", "none")}});
}

std::vector<Value> convert_swish(const NodeView& n) { return {silu(n.in(0), n.real("alpha", 1))}; }
std::vector<Value> convert_swiglu(const NodeView& n) { return {silu(n.in(0), n.real("alpha", 1)) * n.in(1)}; }

std::vector<Value> convert_elu(const NodeView& n) { return {elu(n.in(0), {.alpha = n.real("alpha", 1)})}; }
std::vector<Value> convert_celu(const NodeView& n) {
  const double alpha = n.real("alpha", 1);
  return {elu(n.in(0), {.alpha = alpha, .input_scale = 1 / alpha})};
}
// The defaults have more digits since opset 6.
std::vector<Value> convert_selu(const NodeView& n) {
  const bool precise = n.opset() >= 6;
  return {elu(n.in(0), {.alpha = n.real("alpha", precise ? 1.67326319217681884765625 : 1.6732),
                        .scale = n.real("gamma", precise ? 1.05070102214813232421875 : 1.0507)})};
}

std::vector<Value> convert_leaky_relu(const NodeView& n) {
  return {leaky_relu(n.in(0), n.real("alpha", 0.01f))};
}

// Before opset 7 a vector of slopes belongs to the channels, which are dimension 1.
std::vector<Value> convert_prelu(const NodeView& n) {
  const Value x = n.in(0);
  Value slope = n.in(1);
  if (n.opset() < 7 && slope.shape().ranked() && slope.rank() == 1 && slope.dim(0) != Dim(1)) {
    if (!x.shape().ranked())
      throw unsupported("PRelu: the rank of the input must be known to find its channels");
    slope = unsqueeze(slope, axes_between(1, x.rank() - 1));
  }
  return {where(less(x, scalar(n.graph(), x.dtype(), 0)), x * slope, x)};
}

std::vector<Value> convert_thresholded_relu(const NodeView& n) {
  const Value x = n.in(0);
  const auto number = [&](double value) { return scalar(n.graph(), x.dtype(), value); };
  return {where(greater(x, number(n.real("alpha", 1))), x, number(0))};
}

// Towards zero by `bias`, and zero itself within `lambd` of it.
std::vector<Value> convert_shrink(const NodeView& n) {
  const Value x = n.in(0);
  const auto number = [&](double value) { return scalar(n.graph(), x.dtype(), value); };
  const double lambda = n.real("lambd", 0.5), bias = n.real("bias", 0);
  return {where(less(x, number(-lambda)), x + bias, where(greater(x, number(lambda)), x - bias, number(0)))};
}

std::vector<Value> convert_softsign(const NodeView& n) { return {n.in(0) / (1.0 + abs(n.in(0)))}; }

std::vector<Value> convert_hard_sigmoid(const NodeView& n) {
  return {hard_sigmoid(n.in(0), n.real("alpha", 0.2f), n.real("beta", 0.5))};
}

// --- experimental ops of opset 1, which old exporters wrote

std::vector<Value> convert_affine(const NodeView& n) {
  return {n.in(0) * n.real("alpha", 1) + n.real("beta", 0)};
}
std::vector<Value> convert_scaled_tanh(const NodeView& n) {
  return {n.real("alpha", 1) * tanh(n.real("beta", 1) * n.in(0))};
}
std::vector<Value> convert_parametric_softplus(const NodeView& n) {
  return {n.real("alpha", 1) * softplus(n.real("beta", 1) * n.in(0))};
}
std::vector<Value> convert_image_scaler(const NodeView& n) {
  const std::vector<double> bias = n.reals("bias");
  const Extents per_channel = {static_cast<int64_t>(bias.size()), 1, 1};
  return {n.in(0) * n.real("scale", 1) +
          constant(n.graph(), narrow<double>(n.in(0).dtype(), per_channel, bias))};
}

}  // namespace

const Conversions& activation_conversions() {
  static const Conversions conversions = {
      {"Affine", convert_affine},
      {"Celu", convert_celu},
      {"Elu", convert_elu},
      {"Gelu", convert_gelu},
      {"HardSigmoid", convert_hard_sigmoid},
      {"HardSwish", unary("hard_swish")},
      {"ImageScaler", convert_image_scaler},
      {"LeakyRelu", convert_leaky_relu},
      {"Mish", unary("mish")},
      {"ParametricSoftplus", convert_parametric_softplus},
      {"PRelu", convert_prelu},
      {"Relu", unary("relu")},
      {"ScaledTanh", convert_scaled_tanh},
      {"Selu", convert_selu},
      {"Shrink", convert_shrink},
      {"Sigmoid", unary("sigmoid")},
      {"Softplus", unary("softplus")},
      {"Softsign", convert_softsign},
      {"SwiGLU", convert_swiglu},
      {"Swish", convert_swish},
      {"ThresholdedRelu", convert_thresholded_relu},
  };
  return conversions;
}

}  // namespace tenon::onnx
