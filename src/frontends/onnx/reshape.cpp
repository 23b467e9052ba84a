// reshape.cpp — ONNX ops that give the same elements another shape or order, and constants.
#include "ops/reshape.h"

#include <numeric>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/data.h"

namespace tenon::onnx {
namespace {

std::vector<Value> constant_value(const NodeView& n) {
  if (n.has("value"))
    return {constant(n.graph(), n.literal("value"))};
  if (n.has("value_float"))
    return {constant(n.graph(), Tensor::scalar(static_cast<float>(n.real("value_float"))))};
  if (n.has("value_int"))
    return {constant(n.graph(), Tensor::scalar(n.integer("value_int")))};
  if (n.has("value_ints"))
    return {int_vector(n.graph(), n.integers("value_ints"))};
  if (n.has("value_floats")) {
    const std::vector<double> reals = n.reals("value_floats");
    return {constant(n.graph(), Tensor::of(std::vector<float>(reals.begin(), reals.end())))};
  }
  if (n.has("value_string"))
    return {constant(n.graph(), Tensor::strings({n.text("value_string")}, {}))};
  if (n.has("value_strings")) {
    std::vector<std::string> texts = n.texts("value_strings");
    const auto count = static_cast<int64_t>(texts.size());
    return {constant(n.graph(), Tensor::strings(std::move(texts), {count}))};
  }
  if (n.has("sparse_value"))
    throw unsupported("Constant: a sparse value");
  throw user_error("Constant: it has no value");
}

std::vector<Value> identity(const NodeView& n) { return {n.in(0)}; }

std::vector<Value> reshape_to(const NodeView& n) {
  const Value shape = n.opset() >= 5 ? n.in(1) : int_vector(n.graph(), n.integers("shape"));
  return n.make("reshape", {{"x", n.in(0)}, {"shape", shape}}, {{"allow_zero", n.flag("allowzero", false)}});
}

std::vector<Value> transposed(const NodeView& n) {
  const Value x = n.in(0);
  std::vector<int64_t> reversed(static_cast<size_t>(x.rank()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return {transpose(x, n.integers("perm", reversed))};
}

}  // namespace

const Conversions& reshape_conversions() {
  static const Conversions conversions = {
      {"Constant", constant_value},
      {"Identity", identity},
      {"Reshape", reshape_to},
      {"Transpose", transposed},
  };
  return conversions;
}

}  // namespace tenon::onnx
