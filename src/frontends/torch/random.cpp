// random.cpp — PyTorch's draws from distributions, of numbers that are drawn evenly or normally: the
// distributions are PyTorch's, the numbers are ours.
#include "ops/random.h"

#include <cmath>
#include <limits>
#include <numbers>

#include "base/error.h"
#include "frontends/torch/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/unary.h"

namespace tenon::torch {
namespace {

// From 0 to before 1, and normally around 0, in a dtype that formulas are computed in.
struct Draw {
  Value shape;
  DType dtype;  // of the result

  explicit Draw(Value like) : shape(shape_of(like)), dtype(like.dtype()) {}
  Draw(Value shape, DType dtype) : shape(shape), dtype(dtype) {}

  DType computed() const { return dtype == DType::F64 || !is_float(dtype) ? DType::F64 : DType::F32; }
  Value evenly() const { return random_uniform(shape, computed()); }
  Value normally() const { return random_normal(shape, computed()); }
  std::vector<Value> result(Value y) const { return {in_dtype(y, dtype)}; }
};

// --- bernoulli: 1 with a probability, else 0

std::vector<Value> convert_bernoulli(const NodeView& n) {
  const Value x = n.tensor("self");
  const Draw draw(x);
  const Value p =
      n.has("p") ? as_value(n.graph(), n.term("p"), draw.computed()) : in_dtype(x, draw.computed());
  return {cast(less(draw.evenly(), p), x.dtype())};
}

// --- normal: by mean and deviation, each of them a number or a tensor

std::vector<Value> convert_normal(const NodeView& n) {
  const Term mean = n.has("mean") ? n.term("mean") : Term(0.0),
             deviation = n.has("std") ? n.term("std") : Term(1.0);
  Value shape;
  DType dtype = DType::F32;
  if (n.has("size")) {
    shape = n.vector(n.sizes("size"));
    dtype = n.dtype("dtype", dtype);
  } else if (n.has("self")) {
    shape = shape_of(n.tensor("self"));
    dtype = n.tensor("self").dtype();
  } else {
    for (const Term& term : {mean, deviation})
      if (term.is_tensor()) {
        dtype = term.value().dtype();
        shape = shape ? shape_of(broadcast_to(term.value(), shape)) : shape_of(term.value());
      }
    if (!shape)
      throw user_error("{}: its size is missing", n.op());
  }
  const Draw draw(shape, dtype);
  const auto in = [&](const Term& term) { return as_value(n.graph(), term, draw.computed()); };
  return draw.result(in(mean) + in(deviation)*draw.normally());
}

std::vector<Value> convert_log_normal(const NodeView& n) {
  const Draw draw(n.tensor("self"));
  return draw.result(exp(n.real("mean", 1) + n.real("std", 2) * draw.normally()));
}

// --- others, by the inverse of their distribution function

std::vector<Value> convert_uniform(const NodeView& n) {
  const Draw draw(n.tensor("self"));
  const double from = n.real("from", 0), to = n.real("to", 1);
  return draw.result(from + (to - from) * draw.evenly());
}

// 1 - u is never 0, as u is never 1.
Value negative_logarithm(const Draw& draw) { return -log(1.0 - draw.evenly()); }

std::vector<Value> convert_exponential(const NodeView& n) {
  const Draw draw(n.tensor("self"));
  return draw.result(negative_logarithm(draw) / n.real("lambd", 1));
}
std::vector<Value> convert_cauchy(const NodeView& n) {
  const Draw draw(n.tensor("self"));
  return draw.result(n.real("median", 0) +
                     n.real("sigma", 1) * tan(std::numbers::pi * (draw.evenly() - 0.5)));
}
// How often one tries with a probability until it holds.
std::vector<Value> convert_geometric(const NodeView& n) {
  const Draw draw(n.tensor("self"));
  const double p = n.real("p");
  if (!(p > 0 && p < 1))
    throw user_error("geometric: p is {}, but must be between 0 and 1", p);
  const Value one = scalar(n.graph(), draw.computed(), 1);
  return draw.result(maximum(ceil(negative_logarithm(draw) / -std::log1p(-p)), one));
}

// --- integers from low to before high

std::vector<Value> integers(const NodeView& n, Value shape, DType dtype) {
  const double low = n.has("low") ? n.real("low") : 0, high = n.real("high");
  if (!(low < high))
    throw user_error("{}: there is no integer from {} to before {}", n.op(), low, high);
  return {in_dtype(floor(low + (high - low) * random_uniform(shape, DType::F64)), dtype)};
}
std::vector<Value> convert_randint(const NodeView& n) {
  return integers(n, n.vector(n.sizes("size")), n.dtype("dtype", DType::I64));
}
std::vector<Value> convert_randint_like(const NodeView& n) {
  const Value x = n.tensor("self");
  return integers(n, shape_of(x), n.dtype("dtype", x.dtype()));
}

}  // namespace

const Conversions& random_conversions() {
  static const Conversions conversions = {
      {"bernoulli", convert_bernoulli},       {"cauchy", convert_cauchy},
      {"exponential", convert_exponential},   {"geometric", convert_geometric},
      {"log_normal", convert_log_normal},     {"normal", convert_normal},
      {"normal_functional", convert_normal},  {"randint", convert_randint},
      {"randint_like", convert_randint_like}, {"uniform", convert_uniform},
  };
  return conversions;
}

}  // namespace tenon::torch
