#include "frontends/onnx/write/integer_products.h"

namespace tenon::onnx {
namespace {

struct Centred {
  Value integers, zero_point;
};

const Node* made_by(Value value, std::string_view op) {
  return !value.is_input() && value.node()->is(op) ? value.node() : nullptr;
}

// What was 8 bits wide before it was cast to i32; empty for other values.
Value narrow_of(Value value) {
  const Node* cast = made_by(value, "cast");
  if (cast == nullptr || value.dtype() != DType::I32)
    return {};
  const Value x = cast->in("x");
  return x.dtype() == DType::U8 || x.dtype() == DType::I8 ? x : Value();
}

// A zero point for all elements or, of weights, one for each of the first dimension, which is all that
// follows it made 1.
Value zero_point_of(Value zero, Value x, bool may_be_vector) {
  const Node* unsqueeze = made_by(zero, "unsqueeze");
  const Value narrow = narrow_of(unsqueeze != nullptr ? unsqueeze->in("x") : zero);
  if (!narrow || narrow.dtype() != x.dtype() || !narrow.shape().ranked())
    return {};
  if (unsqueeze == nullptr)
    return narrow.rank() == 0 || (narrow.rank() == 1 && narrow.dim(0) == Dim(1)) ? narrow : Value();
  const bool is_along_the_first = may_be_vector && narrow.rank() == 1 && zero.shape().ranked() &&
                                  x.shape().ranked() && zero.rank() == x.rank() &&
                                  zero.dim(0) == narrow.dim(0);
  return is_along_the_first ? narrow : Value();
}

std::optional<Centred> centred(Value value, bool may_be_vector) {
  if (const Value narrow = narrow_of(value))
    return Centred{narrow, {}};
  const Node* sub = made_by(value, "sub");
  const Value narrow = sub != nullptr ? narrow_of(sub->in("a")) : Value();
  const Value zero = narrow ? zero_point_of(sub->in("b"), narrow, may_be_vector) : Value();
  return zero ? std::optional(Centred{narrow, zero}) : std::nullopt;
}

}  // namespace

std::optional<OnnxCall> spell_integer_product(const Node& node) {
  if (node.result().dtype() != DType::I32)
    return std::nullopt;
  const bool is_conv = node.is("conv");
  const auto a = centred(node.in(is_conv ? "x" : "a"), false),
             b = centred(node.in(is_conv ? "w" : "b"), is_conv);
  auto call = a && b ? call_in_onnx(node) : std::nullopt;
  if (!call)
    return std::nullopt;
  call->name = is_conv ? "ConvInteger" : "MatMulInteger";
  call->inputs = {{a->integers}, {b->integers}, {a->zero_point}, {b->zero_point}};
  return call;
}

}  // namespace tenon::onnx
