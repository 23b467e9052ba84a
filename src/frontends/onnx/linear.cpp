// linear.cpp — ONNX products of matrices.
#include "ops/linear.h"

#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"

namespace tenon::onnx {
namespace {

std::vector<Value> product(const NodeView& n) { return {matmul(n.in(0), n.in(1))}; }

// alpha · A' B' + beta · C
std::vector<Value> gemm(const NodeView& n) {
  Value y = matmul(n.in(0), n.in(1), {.a = n.flag("transA", false), .b = n.flag("transB", false)});
  if (const double alpha = n.real("alpha", 1); alpha != 1)
    y = y * alpha;
  if (Value c = n.maybe(2)) {
    if (const double beta = n.real("beta", 1); beta != 1)
      c = c * beta;
    y = y + c;
  }
  return {y};
}

}  // namespace

const Conversions& linear_conversions() {
  static const Conversions conversions = {{"MatMul", product}, {"Gemm", gemm}};
  return conversions;
}

}  // namespace tenon::onnx
