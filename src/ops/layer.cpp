#include "ops/layer.h"

#include "ops/binary.h"
#include "ops/elements.h"
#include "ops/gradient.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/shapes.h"

namespace tenon {
namespace {

namespace linear_op {

Types infer(const Node& n) {
  const Value x = n.in("x"), weight = n.in("weight"), bias = n.in("bias");
  if (x.rank() == 0)
    throw operand_error(n, "x has no features: it is a scalar");
  if (weight.rank() != 2)
    throw operand_error(n, "weight must be a matrix, [outputs, features]");
  if (bias && bias.rank() != 1)
    throw operand_error(n, "bias must be a vector, [outputs]");
  if (provably_different(x.dim(-1), weight.dim(1)))
    throw operand_error(n, fmt::format("x has {} features, but weight is for {}{}", x.dim(-1), weight.dim(1),
                                       x.dim(-1) == weight.dim(0) ? "; it looks transposed" : ""));
  if (bias && provably_different(bias.dim(0), weight.dim(0)))
    throw operand_error(
        n, fmt::format("weight gives {} outputs, but bias is for {}", weight.dim(0), bias.dim(0)));
  std::vector<Dim> dims = x.shape().dims();
  dims.back() = weight.dim(0);
  return {Type::tensor(x.dtype(), dims)};
}

Data eval(const Call& c) {
  const Tensor &x = c.in("x"), &weight = c.in("weight");
  if (x.rank() == 0 || weight.rank() != 2 || weight.extent(1) != x.extent(x.rank() - 1))
    throw user_error("linear: x of [{}] does not fit weight of [{}]", fmt::join(x.extents(), ","),
                     fmt::join(weight.extents(), ","));
  const auto features = static_cast<size_t>(weight.extent(1)),
             outputs = static_cast<size_t>(weight.extent(0));
  std::vector<double> bias = zeros<double>({weight.extent(0)});
  if (c.has("bias")) {
    if (c.in("bias").extents() != Extents{weight.extent(0)})
      throw user_error("linear: bias of [{}] does not fit weight of [{}]",
                       fmt::join(c.in("bias").extents(), ","), fmt::join(weight.extents(), ","));
    bias = widen<double>(c.in("bias"));
  }
  Extents extents = x.extents();
  extents.back() = weight.extent(0);
  const std::vector<double> rows = widen<double>(x), w = widen<double>(weight);
  std::vector<double> y = zeros<double>(extents);
  const size_t row_count = outputs == 0 ? 0 : y.size() / outputs;
  for (size_t row = 0; row < row_count; ++row)
    for (size_t output = 0; output < outputs; ++output) {
      double sum = 0;
      for (size_t k = 0; k < features; ++k)
        sum += rows[row * features + k] * w[output * features + k];
      y[row * outputs + output] = sum + bias[output];
    }
  return {narrow<double>(x.dtype(), extents, y)};
}

// The rows of x and dy, whatever dimensions they stand in, are one matrix.
std::vector<Operand> grad(const GradContext& n) {
  const Value x = n.in("x"), weight = n.in("weight"), dy = n.dy();
  Axes leading(static_cast<size_t>(x.rank() - 1));
  std::iota(leading.begin(), leading.end(), 0);
  return {{"x", x.rank() == 1 ? squeeze(matmul(as_rows(dy), weight), {0}) : matmul(dy, weight)},
          {"weight", matmul(as_rows(dy), as_rows(x), {.a = true})},
          {"bias", n.has("bias") ? reduce_sum(dy, leading) : Value()}};
}

std::vector<Value> decompose(const Node& n) {
  const Value product = matmul(n.in("x"), n.in("weight"), {.b = true});
  return {n.has("bias") ? product + n.in("bias") : product};
}

}  // namespace linear_op

}  // namespace

const Family& layer_ops() {
  static const Family ops = {
      {.name = "linear",
       .doc = "x · weightᵀ + bias along the last dimension, with weight: [outputs, features]",
       .operands = {{"x", "T"}, {"weight", "T"}, {"bias", "T", Arity::Optional}},
       .results = {{"y", "T"}},
       .types = {{"T", Floats}},
       .infer = linear_op::infer,
       .eval = linear_op::eval,
       .grad = linear_op::grad,
       .decompose = linear_op::decompose},
  };
  return ops;
}

Value linear(Value x, Value weight, Value bias) {
  return x.graph().create("linear", {{"x", x}, {"weight", weight}, {"bias", bias}})->result();
}

}  // namespace tenon
