// activation.cpp — PyTorch's activation functions.
#include "ops/activation.h"

#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/precision.h"
#include "frontends/torch/conversions.h"
#include "frontends/torch/gradient.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/generate.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/slice.h"
#include "ops/softmax.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

Convert unary(std::string_view op) {
  return [op](const NodeView& n) { return n.make(op, {{"x", n.tensor("self")}}); };
}
// Integers are converted first.
Convert on_floats(std::string_view op) {
  return [op](const NodeView& n) {
    const Value x = n.tensor("self");
    return n.make(op, {{"x", in_dtype(x, float_type(x.dtype()))}});
  };
}

std::vector<Value> convert_gelu(const NodeView& n) {
  const std::string approximate = n.text("approximate", "none");
  if (approximate != "none" && approximate != "tanh")
    throw user_error("gelu: approximate is \"{}\", but must be none or tanh", approximate);
  return {approximate == "tanh" ? gelu_tanh(n.tensor("self")) : gelu(n.tensor("self"))};
}

std::vector<Value> convert_elu(const NodeView& n) {
  return {elu(
      n.tensor("self"),
      {.alpha = n.real("alpha", 1), .scale = n.real("scale", 1), .input_scale = n.real("input_scale", 1)})};
}
std::vector<Value> convert_selu(const NodeView& n) {
  return {elu(n.tensor("self"),
              {.alpha = 1.6732632423543772848170429916717, .scale = 1.0507009873554804934193349852946})};
}
std::vector<Value> convert_celu(const NodeView& n) {
  const double alpha = n.real("alpha", 1);
  return {elu(n.tensor("self"), {.alpha = alpha, .input_scale = 1 / alpha})};
}

std::vector<Value> convert_leaky_relu(const NodeView& n) {
  return {leaky_relu(n.tensor("self"), n.real("negative_slope", 0.01))};
}
std::vector<Value> convert_silu(const NodeView& n) { return {silu(n.tensor("self"))}; }
std::vector<Value> convert_hardsigmoid(const NodeView& n) {
  return {hard_sigmoid(n.tensor("self"), 1.0 / 6, 0.5)};
}

Value limited(const NodeView& n, double least, double greatest) {
  const Value x = n.tensor("self");
  return clip(x, n.number(x.dtype(), least), n.number(x.dtype(), greatest));
}
std::vector<Value> convert_hardtanh(const NodeView& n) {
  return {limited(n, n.real("min_val", -1), n.real("max_val", 1))};
}
std::vector<Value> convert_relu6(const NodeView& n) { return {limited(n, 0, 6)}; }

// Beyond `threshold` PyTorch gives beta · x itself, which the formula rounds to as well.
std::vector<Value> convert_softplus(const NodeView& n) {
  const Value x = n.tensor("self");
  const double beta = n.real("beta", 1), threshold = n.real("threshold", 20);
  const Value scaled = beta == 1 ? x : x * beta;
  const Value y = beta == 1 ? softplus(x) : softplus(scaled) / beta;
  constexpr double exact = 17;  // from here on log(1 + exp(x)) is x in f32
  if (threshold >= exact && x.dtype() != DType::F64)
    return {y};
  return {where(greater(scaled, n.number(x.dtype(), threshold)), x, y)};
}

Value log_sigmoid(Value x) { return -softplus(-x); }
std::vector<Value> convert_log_sigmoid(const NodeView& n) { return {log_sigmoid(n.tensor("self"))}; }
std::vector<Value> convert_log_sigmoid_forward(const NodeView& n) {
  const Value x = n.tensor("self");
  // What the CPU's gradient looks at, and ours does not; elsewhere it is empty.
  const TensorMeta* buffer = n.result_meta(1);
  if (buffer != nullptr && buffer->sizes == std::vector<SymInt>{0})
    return {log_sigmoid(x), fill(int_vector(n.graph(), {0}), filled(x.dtype(), {}, 0))};
  return {log_sigmoid(x), exp(-abs(x))};
}

std::vector<Value> convert_softsign(const NodeView& n) {
  return {n.tensor("self") / (1.0 + abs(n.tensor("self")))};
}
std::vector<Value> convert_tanhshrink(const NodeView& n) {
  return {n.tensor("self") - tanh(n.tensor("self"))};
}

std::vector<Value> convert_hardshrink(const NodeView& n) {
  const Value x = n.tensor("self");
  return {where(less_equal(abs(x), n.number(x.dtype(), n.real("lambd", 0.5))), n.number(x.dtype(), 0), x)};
}
std::vector<Value> convert_softshrink(const NodeView& n) {
  const Value x = n.tensor("self");
  const double lambda = n.real("lambd", 0.5);
  const auto number = [&](double value) { return n.number(x.dtype(), value); };
  return {
      where(less(x, number(-lambda)), x + lambda, where(greater(x, number(lambda)), x - lambda, number(0)))};
}

std::vector<Value> convert_threshold(const NodeView& n) {
  const Value x = n.tensor("self");
  return {where(less_equal(x, n.number(x.dtype(), n.real("threshold"))), n.number(x.dtype(), n.real("value")),
                x)};
}

// One slope for all, or one for each channel, which are dimension 1.
std::vector<Value> convert_prelu(const NodeView& n) {
  const Value x = n.tensor("self");
  Value slope = n.tensor("weight");
  if (slope.rank() == 1 && n.rank_of(x) > 2)
    slope = unsqueeze(slope, axes_between(1, x.rank() - 1));
  return {where(less(x, n.number(x.dtype(), 0)), x * slope, x)};
}

std::vector<Value> convert_glu(const NodeView& n) {
  const Value x = n.tensor("self");
  const int64_t axis = n.axis("dim", n.rank_of(x), -1);
  const auto size = x.dim(axis).constant();
  if (!size || *size % 2 != 0)
    throw unsupported("glu: {} cannot be halved along axis {}", x.type(), axis);
  return {slice(x, axis, 0, *size / 2) * sigmoid(slice(x, axis, *size / 2, kToTheEnd))};
}

// --- softmax

// Integers, and half precision on request, are computed in another dtype.
Value softmax_input(const NodeView& n) {
  const Value x = n.tensor("self");
  if (n.flag("half_to_float", false))
    return in_dtype(x, DType::F32);
  return in_dtype(x, n.dtype("dtype", float_type(x.dtype())));
}

// A scalar is a vector of one.
std::vector<Value> along_axis(const NodeView& n, Value (*formula)(Value, int64_t)) {
  const Value x = softmax_input(n);
  const int64_t axis = n.integer("dim");
  return {n.rank_of(x) == 0 ? reshape(formula(reshape(x, {1}), 0), std::vector<int64_t>{})
                            : formula(x, axis)};
}
Convert softmax_by(Value (*formula)(Value, int64_t)) {
  return [formula](const NodeView& n) { return along_axis(n, formula); };
}
Value softmin(Value x, int64_t axis) { return softmax(-x, axis); }

// Zeros, and not NaN, where everything is -inf.
std::vector<Value> convert_safe_softmax(const NodeView& n) {
  const Value x = softmax_input(n);
  const int64_t axis = n.axis("dim", n.rank_of(x));
  const Value none = n.make_one("is_inf", {{"x", reduce_max(x, {axis}, Keep::Dims)}}, {{"positive", false}});
  return {where(none, n.number(x.dtype(), 0), softmax(x, axis))};
}

// --- gradients

// By the result y of the function.
Convert by_result(Value (*formula)(Value y, Value dy)) {
  return [formula](const NodeView& n) {
    return std::vector<Value>{formula(n.tensor("output"), n.tensor("grad_output"))};
  };
}
Value sigmoid_gradient(Value y, Value dy) { return dy * (y * (1.0 - y)); }
Value tanh_gradient(Value y, Value dy) { return dy * (1.0 - y * y); }

// At the bounds it is 0.
std::vector<Value> convert_hardtanh_backward(const NodeView& n) {
  const Value x = n.tensor("self"), dy = n.tensor("grad_output");
  const Value within = logical_and(greater(x, n.number(x.dtype(), n.real("min_val", -1))),
                                   less(x, n.number(x.dtype(), n.real("max_val", 1))));
  return {where(within, dy, n.number(dy.dtype(), 0))};
}

std::vector<Value> convert_threshold_backward(const NodeView& n) {
  const Value x = n.tensor("self"), dy = n.tensor("grad_output");
  return {where(less_equal(x, n.number(x.dtype(), n.real("threshold"))), n.number(dy.dtype(), 0), dy)};
}

// Where y = scale · alpha · (exp(input_scale · x) - 1), its derivative is input_scale · (y + scale · alpha).
std::vector<Value> convert_elu_backward(const NodeView& n) {
  const double alpha = n.real("alpha", 1), scale = n.real("scale", 1), input_scale = n.real("input_scale", 1);
  const Value given = n.tensor("self_or_result"), dy = n.tensor("grad_output");
  const Value below = n.flag("is_result", false) ? (given + scale * alpha) * input_scale
                                                 : exp(given * input_scale) * (scale * alpha * input_scale);
  return {dy * where(less_equal(given, n.number(given.dtype(), 0)), below, n.number(given.dtype(), scale))};
}

Convert leaky_relu_backward() {
  const Convert convert = gradient_of(convert_leaky_relu);
  return [convert](const NodeView& n) {
    n.ignore("self_is_result");  // which has the same sign
    return convert(n);
  };
}
// The slope below 0 is the mean of its bounds, or while training was drawn for each element.
std::vector<Value> convert_rrelu_backward(const NodeView& n) {
  const Value x = n.tensor("self"), dy = n.tensor("grad_output");
  const double lower = n.real("lower", 1.0 / 8), upper = n.real("upper", 1.0 / 3);
  n.ignore("self_is_result");
  if (n.flag("training", false) && upper - lower > 1e-6)
    return {dy * n.tensor("noise")};
  n.ignore("noise");
  return {where(greater(x, n.number(x.dtype(), 0)), dy, dy * ((lower + upper) / 2))};
}

Convert log_sigmoid_backward() {
  const Convert convert = gradient_of(convert_log_sigmoid);
  return [convert](const NodeView& n) {
    n.ignore("buffer");
    return convert(n);
  };
}

// dy · y summed along the axis, where y is a softmax.
std::vector<Value> softmax_gradient(const NodeView& n, bool of_logarithm) {
  const Value given = n.tensor("output"), y = widened(given),
              dy = in_dtype(n.tensor("grad_output"), y.dtype());
  const DType dtype = n.dtype("input_dtype", given.dtype());
  if (n.rank_of(y) == 0) {
    n.ignore("dim");
    return {fill(shape_of(y), filled(dtype, {}, 0))};
  }
  const int64_t axis = n.axis("dim", y.rank());
  const auto total = [&](Value x) { return reduce_sum(x, {axis}, Keep::Dims); };
  return {in_dtype(of_logarithm ? dy - exp(y) * total(dy) : y * dy - y * total(y * dy), dtype)};
}
std::vector<Value> convert_softmax_backward(const NodeView& n) { return softmax_gradient(n, false); }
std::vector<Value> convert_log_softmax_backward(const NodeView& n) { return softmax_gradient(n, true); }

}  // namespace

const Conversions& activation_conversions() {
  static const Conversions conversions = {
      {"_log_softmax", softmax_by(log_softmax)},
      {"_log_softmax_backward_data", convert_log_softmax_backward},
      {"_safe_softmax", convert_safe_softmax},
      {"_softmax", softmax_by(softmax)},
      {"_softmax_backward_data", convert_softmax_backward},
      {"celu", convert_celu},
      {"elu", convert_elu},
      {"elu_backward", convert_elu_backward},
      {"gelu", convert_gelu},
      {"gelu_backward", gradient_of(convert_gelu)},
      {"glu", convert_glu},
      {"glu_backward", gradient_of(convert_glu)},
      {"hardshrink", convert_hardshrink},
      {"hardshrink_backward", gradient_of(convert_hardshrink, "self", "grad_out")},
      {"hardsigmoid", convert_hardsigmoid},
      {"hardsigmoid_backward", gradient_of(convert_hardsigmoid)},
      {"hardswish", unary("hard_swish")},
      {"hardswish_backward", gradient_of(unary("hard_swish"))},
      {"hardtanh", convert_hardtanh},
      {"hardtanh_backward", convert_hardtanh_backward},
      {"leaky_relu", convert_leaky_relu},
      {"leaky_relu_backward", leaky_relu_backward()},
      {"log_sigmoid", convert_log_sigmoid},
      {"log_sigmoid_backward", log_sigmoid_backward()},
      {"log_sigmoid_forward", convert_log_sigmoid_forward},
      {"log_softmax", softmax_by(log_softmax)},
      {"mish", unary("mish")},
      {"mish_backward", gradient_of(unary("mish"))},
      {"prelu", convert_prelu},
      {"_prelu_kernel", convert_prelu},
      {"relu", unary("relu")},
      {"relu6", convert_relu6},
      {"rrelu_with_noise_backward", convert_rrelu_backward},
      {"selu", convert_selu},
      {"sigmoid", on_floats("sigmoid")},
      {"sigmoid_backward", by_result(sigmoid_gradient)},
      {"silu", convert_silu},
      {"silu_backward", gradient_of(convert_silu)},
      {"softmax", softmax_by(softmax)},
      {"softmin", softmax_by(softmin)},
      {"softplus", convert_softplus},
      {"softplus_backward", gradient_of(convert_softplus)},
      {"softshrink", convert_softshrink},
      {"softshrink_backward", gradient_of(convert_softshrink)},
      {"softsign", convert_softsign},
      {"tanhshrink", convert_tanhshrink},
      {"tanh_backward", by_result(tanh_gradient)},
      {"threshold", convert_threshold},
      {"threshold_backward", convert_threshold_backward},
  };
  return conversions;
}

}  // namespace tenon::torch
