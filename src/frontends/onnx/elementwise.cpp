// elementwise.cpp — ONNX ops that compute element by element.
#include "base/error.h"
#include "frontends/onnx/conversions.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/reshape.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

template <const char* op>
std::vector<Value> unary(const NodeView& n) {
  return n.make(op, {{"x", n.in(0)}});
}

// Before opset 7 the second operand lines up with the first from `axis` on, and only if `broadcast` is set.
Value aligned(const NodeView& n, Value a, Value b) {
  if (n.opset() >= 7 || !n.flag("broadcast", false) || !n.has("axis"))
    return b;
  const int64_t axis = n.integer("axis"), rank = a.rank();
  std::vector<int64_t> trailing;
  for (int64_t i = (axis < 0 ? axis + rank : axis) + b.rank(); i < rank; ++i)
    trailing.push_back(static_cast<int64_t>(trailing.size()) + b.rank());
  return trailing.empty() ? b : unsqueeze(b, trailing);
}

template <const char* op>
std::vector<Value> binary(const NodeView& n) {
  return n.make(op, {{"a", n.in(0)}, {"b", aligned(n, n.in(0), n.in(1))}});
}

// Max, Min, Sum, Mean of any number of operands: one after the other.
template <const char* op>
std::vector<Value> variadic(const NodeView& n) {
  std::vector<Value> operands = n.ins();
  if (operands.empty())
    throw user_error("{}: it needs at least one input", n.op_type());
  Value result = operands.front();
  for (size_t i = 1; i < operands.size(); ++i)
    result = n.make(op, {{"a", result}, {"b", operands[i]}}).front();
  return {result};
}

}  // namespace

const Conversions& elementwise_conversions() {
  static constexpr char abs[] = "abs", neg[] = "neg", exp[] = "exp", log[] = "log", sqrt[] = "sqrt",
                        relu[] = "relu", sigmoid[] = "sigmoid", tanh[] = "tanh", erf[] = "erf", add[] = "add",
                        sub[] = "sub", mul[] = "mul", div[] = "div", max[] = "max", min[] = "min";
  static const Conversions conversions = {
      {"Abs", unary<abs>},    {"Neg", unary<neg>},    {"Exp", unary<exp>},    {"Log", unary<log>},
      {"Sqrt", unary<sqrt>},  {"Relu", unary<relu>},  {"Tanh", unary<tanh>},  {"Erf", unary<erf>},
      {"Add", binary<add>},   {"Sub", binary<sub>},   {"Mul", binary<mul>},   {"Div", binary<div>},
      {"Max", variadic<max>}, {"Min", variadic<min>}, {"Sum", variadic<add>}, {"Sigmoid", unary<sigmoid>},
  };
  return conversions;
}

}  // namespace tenon::onnx
