// einsum.cpp — ONNX Einsum.
#include "ops/einsum.h"

#include "base/error.h"
#include "frontends/onnx/conversions.h"

namespace tenon::onnx {
namespace {

std::vector<Value> convert_einsum(const NodeView& n) {
  const std::vector<Value> operands = n.ins();
  if (operands.empty())
    throw user_error("Einsum: it needs at least one input");
  return {einsum(operands, n.text("equation"))};
}

}  // namespace

const Conversions& einsum_conversions() {
  static const Conversions conversions = {{"Einsum", convert_einsum}};
  return conversions;
}

}  // namespace tenon::onnx
