// integer_products.h — products and convolutions of 8-bit integers in i32, which are ops of their own in
// ONNX.
#pragma once

#include "frontends/onnx/write/constants.h"
#include "frontends/onnx/write/words.h"

namespace tenon::onnx {

// ConvInteger or MatMulInteger, for a conv or matmul of i32 whose operands are 8-bit integers, widened,
// perhaps less their zero point; nothing for any other.
std::optional<OnnxCall> spell_integer_product(const Node& node);

// The same, of operands for which there is such a call: constants for which 8 bits are enough, and zero
// points that are constants of i32. Empty where there is one already, or none.
Value with_narrow_operands(const Node& node, ConstantExpressions& constants);

}  // namespace tenon::onnx
