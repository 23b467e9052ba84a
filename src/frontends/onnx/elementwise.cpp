// elementwise.cpp — ONNX ops that compute element by element.
#include "base/error.h"
#include "frontends/dimensions.h"
#include "frontends/onnx/conversions.h"
#include "frontends/precision.h"
#include "ops/binary.h"
#include "ops/reshape.h"
#include "ops/select.h"
#include "ops/shapes.h"
#include "ops/unary.h"

namespace tenon::onnx {
namespace {

// Before opset 7 the second operand lines up with the first from `axis` on, and only if `broadcast` is set.
Value aligned(const NodeView& n, Value a, Value b) {
  if (n.opset() >= 7 || !n.flag("broadcast", false) || !n.has("axis"))
    return b;
  if (!a.shape().ranked() || !b.shape().ranked())
    throw unsupported("{}: the ranks of both inputs must be known to line them up from axis on", n.op_type());
  const int64_t axis = checked_axis(n.op_type(), n.integer("axis"), a.rank());
  const std::vector<int64_t> trailing = axes_between(b.rank(), a.rank() - axis);
  return trailing.empty() ? b : unsqueeze(b, trailing);
}

// The conversion to our `op` of two operands, a and b, broadcast to each other.
std::vector<Value> make_binary(const NodeView& n, std::string_view op, Attributes attributes = {}) {
  return n.make(op, {{"a", n.in(0)}, {"b", aligned(n, n.in(0), n.in(1))}}, std::move(attributes));
}
Convert binary(std::string_view op) {
  return [op](const NodeView& n) { return make_binary(n, op); };
}

// The same for any number of operands: one after the other.
Value accumulate(const NodeView& n, std::string_view op, const std::vector<Value>& operands) {
  if (operands.empty())
    throw user_error("{}: it needs at least one input", n.op_type());
  Value result = operands.front();
  for (size_t i = 1; i < operands.size(); ++i)
    result = n.make(op, {{"a", result}, {"b", operands[i]}}).front();
  return result;
}
Convert variadic(std::string_view op) {
  return [op](const NodeView& n) { return std::vector<Value>{accumulate(n, op, n.ins())}; };
}

std::vector<Value> convert_mean(const NodeView& n) {
  std::vector<Value> wide;
  for (Value operand : n.ins())
    wide.push_back(widened(operand));
  const Value sum = accumulate(n, "add", wide);
  return {in_dtype(sum / static_cast<double>(wide.size()), n.in(0).dtype())};
}

std::vector<Value> convert_mod(const NodeView& n) {
  return make_binary(n, "mod", {{"sign_of_dividend", n.flag("fmod", false)}});
}

std::vector<Value> convert_bit_shift(const NodeView& n) {
  const auto direction = n.translate<std::string>("direction", {{"LEFT", "left"}, {"RIGHT", "right"}});
  return make_binary(n, "shift", {{"direction", direction}});
}

std::vector<Value> convert_is_inf(const NodeView& n) {
  return n.make(
      "is_inf", {{"x", n.in(0)}},
      {{"positive", n.flag("detect_positive", true)}, {"negative", n.flag("detect_negative", true)}});
}

}  // namespace

const Conversions& elementwise_conversions() {
  static const Conversions conversions = {
      {"Abs", unary("abs")},
      {"Acos", unary("acos")},
      {"Acosh", unary("acosh")},
      {"Add", binary("add")},
      {"And", binary("and")},
      {"Asin", unary("asin")},
      {"Asinh", unary("asinh")},
      {"Atan", unary("atan")},
      {"Atanh", unary("atanh")},
      {"BitShift", convert_bit_shift},
      {"BitwiseAnd", binary("bit_and")},
      {"BitwiseNot", unary("bit_not")},
      {"BitwiseOr", binary("bit_or")},
      {"BitwiseXor", binary("bit_xor")},
      {"Ceil", unary("ceil")},
      {"Cos", unary("cos")},
      {"Cosh", unary("cosh")},
      {"Div", binary("div")},
      {"Equal", binary("equal")},
      {"Erf", unary("erf")},
      {"Exp", unary("exp")},
      {"Floor", unary("floor")},
      {"Greater", binary("greater")},
      {"GreaterOrEqual", binary("greater_equal")},
      {"IsInf", convert_is_inf},
      {"IsNaN", unary("is_nan")},
      {"Less", binary("less")},
      {"LessOrEqual", binary("less_equal")},
      {"Log", unary("log")},
      {"Max", variadic("max")},
      {"Mean", convert_mean},
      {"Min", variadic("min")},
      {"Mod", convert_mod},
      {"Mul", binary("mul")},
      {"Neg", unary("neg")},
      {"Not", unary("not")},
      {"Or", binary("or")},
      {"Pow", binary("pow")},
      {"Reciprocal", unary("reciprocal")},
      {"Round", unary("round")},
      {"Sign", unary("sign")},
      {"Sin", unary("sin")},
      {"Sinh", unary("sinh")},
      {"Sqrt", unary("sqrt")},
      {"Sub", binary("sub")},
      {"Sum", variadic("add")},
      {"Tan", unary("tan")},
      {"Tanh", unary("tanh")},
      {"Xor", binary("xor")},
  };
  return conversions;
}

}  // namespace tenon::onnx
