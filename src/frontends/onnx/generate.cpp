// generate.cpp — ONNX ops that make tensors from a shape or a few numbers.
#include "ops/generate.h"

#include "frontends/onnx/conversions.h"
#include "ops/reshape.h"

namespace tenon::onnx {
namespace {

std::vector<Value> convert_constant_of_shape(const NodeView& n) {
  return {fill(n.in(0), n.has("value") ? n.literal("value").tensor() : Tensor(DType::F32, {}))};
}

std::vector<Value> convert_range(const NodeView& n) { return {range(n.in(0), n.in(1), n.in(2))}; }

std::vector<Value> convert_eye_like(const NodeView& n) {
  const Value x = n.in(0);
  return {eye(shape_of(x), n.dtype("dtype", x.dtype()), n.integer("k", 0))};
}

std::vector<Value> convert_trilu(const NodeView& n) {
  return n.make("triangle", {{"x", n.in(0)}, {"diagonal", n.maybe(1)}}, {{"upper", n.flag("upper", true)}});
}

}  // namespace

const Conversions& generate_conversions() {
  static const Conversions conversions = {
      {"ConstantOfShape", convert_constant_of_shape},
      {"EyeLike", convert_eye_like},
      {"Range", convert_range},
      {"Trilu", convert_trilu},
  };
  return conversions;
}

}  // namespace tenon::onnx
