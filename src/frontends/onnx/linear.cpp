// linear.cpp — ONNX products of matrices.
#include "ops/linear.h"

#include <cmath>

#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/binary.h"

namespace tenon::onnx {
namespace {

std::vector<Value> convert_matmul(const NodeView& n) { return {matmul(n.in(0), n.in(1))}; }

Value scaled(Value x, double factor) {
  if (factor == 1)
    return x;
  if (is_integer(x.dtype()) && factor != std::trunc(factor))
    throw unsupported("Gemm: {} times {}", x.type(), factor);
  return x * factor;
}

// alpha · A' B' + beta · C. Before opset 7 C broadcasts only if `broadcast` is set, and then the same way.
std::vector<Value> convert_gemm(const NodeView& n) {
  for (size_t i = 0; i < 2; ++i)
    if (const Value x = n.in(i); x.shape().ranked() && x.rank() != 2)
      throw user_error("Gemm: {} is {}, but must be a matrix", i == 0 ? "A" : "B", x.type());
  const Value product =
      matmul(n.in(0), n.in(1), {.a = n.flag("transA", false), .b = n.flag("transB", false)});
  const Value y = scaled(product, n.real("alpha", 1));
  const Value c = n.maybe(2);
  return {c ? y + scaled(c, n.real("beta", 1)) : y};
}

}  // namespace

const Conversions& linear_conversions() {
  static const Conversions conversions = {{"MatMul", convert_matmul}, {"Gemm", convert_gemm}};
  return conversions;
}

}  // namespace tenon::onnx
