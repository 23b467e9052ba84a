// random.cpp — ONNX ops that draw random numbers, and Dropout.
#include "ops/random.h"

#include <bit>

#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

// ONNX's seeds are floats. Ours are integers that differ where the floats do.
int64_t seed(const NodeView& n) {
  return n.has("seed") ? std::bit_cast<uint32_t>(static_cast<float>(n.real("seed"))) : kUnseeded;
}

using Fill = Value (*)(const NodeView&, Value shape, DType dtype);

Value uniform(const NodeView& n, Value shape, DType dtype) {
  return random_uniform(shape, dtype, {.low = n.real("low", 0), .high = n.real("high", 1)}, seed(n));
}
Value normal(const NodeView& n, Value shape, DType dtype) {
  return random_normal(shape, dtype, {.mean = n.real("mean", 0), .deviation = n.real("scale", 1)}, seed(n));
}

template <Fill fill>
std::vector<Value> of_given_shape(const NodeView& n) {
  return {fill(n, int_vector(n.graph(), n.integers("shape")), n.dtype("dtype", DType::F32))};
}
template <Fill fill>
std::vector<Value> of_shape_of_input(const NodeView& n) {
  return {fill(n, shape_of(n.in(0)), n.has("dtype") ? n.dtype("dtype") : n.in(0).dtype())};
}

std::vector<Value> convert_bernoulli(const NodeView& n) {
  const Value p = n.in(0);
  return {cast(bernoulli(p, seed(n)), n.dtype("dtype", p.dtype()))};
}

std::vector<Value> convert_multinomial(const NodeView& n) {
  const Value samples = constant(n.graph(), Tensor::scalar(n.integer("sample_size", 1)));
  return {multinomial(n.in(0), samples, n.dtype("dtype", DType::I32), seed(n))};
}

// Whether a Dropout trains: said by an attribute below opset 7, never from 7 to 11, and by an input since,
// which may only be known when the model runs; nothing is known then.
std::optional<bool> trains(const NodeView& n) {
  const Value given = n.opset() >= 12 ? n.maybe(2) : Value();
  if (!given)
    return n.opset() < 7 && !n.flag("is_test", false);
  const Tensor* known = given.known_tensor();
  return known == nullptr ? std::nullopt : std::optional(as_int(*known) != 0);
}

// Whether it is known that no element is dropped, though the node may train: exporters write this for layers
// whose dropout is off.
bool drops_nothing(const NodeView& n) {
  const Value given = n.opset() >= 12 ? n.maybe(1) : Value();
  if (!given)
    return n.real("ratio", 0.5) == 0;
  const Tensor* known = given.known_tensor();
  return known != nullptr && known->count() == 1 && widen<double>(*known).front() == 0;
}

// In training each element is kept with probability 1 - ratio, and then scaled so that the mean stays.
std::vector<Value> convert_dropout(const NodeView& n) {
  const Value x = n.in(0);
  const std::optional<bool> known = drops_nothing(n) ? false : trains(n);
  Value y = x, mask;
  if (known.value_or(true)) {
    const Value training = known ? constant(n.graph(), Tensor::scalar(true)) : n.in(2);
    const Value given = n.opset() >= 12 ? n.maybe(1) : Value();
    const Value ratio = given ? cast(given, DType::F64) : scalar(n.graph(), DType::F64, n.real("ratio", 0.5));
    const int64_t seed = n.has("seed") ? n.integer("seed") & INT64_MAX : kUnseeded;
    const Value kept = bernoulli(broadcast_to(1.0 - ratio, shape_of(x)), seed);
    const Value scaled = x * cast(1.0 / (1.0 - ratio), x.dtype());
    y = where(training, where(kept, scaled, scalar(n.graph(), x.dtype(), 0)), x);
    mask = logical_or(kept, logical_not(training));
  }
  if (!n.wants(1))
    return {y};
  mask = broadcast_to(mask ? mask : constant(n.graph(), Tensor::scalar(true)), shape_of(x));
  return {y, n.opset() >= 10 ? mask : cast(mask, x.dtype())};
}

}  // namespace

const Conversions& random_conversions() {
  static const Conversions conversions = {
      {"Bernoulli", convert_bernoulli},
      {"Dropout", convert_dropout},
      {"Multinomial", convert_multinomial},
      {"RandomNormal", of_given_shape<normal>},
      {"RandomNormalLike", of_shape_of_input<normal>},
      {"RandomUniform", of_given_shape<uniform>},
      {"RandomUniformLike", of_shape_of_input<uniform>},
  };
  return conversions;
}

}  // namespace tenon::onnx
