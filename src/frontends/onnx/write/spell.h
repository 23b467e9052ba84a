// spell.h — a node, and what ONNX says in the same breath, as one call: a convolution with its bias, a
// product of matrices with what is added to it.
#pragma once

#include "frontends/onnx/write/constants.h"
#include "frontends/onnx/write/words.h"

namespace tenon::onnx {

// What Gemm multiplies: ONNX has it for integers too, but engines have not.
bool is_float_matrix(Value value);

// Nothing for a node that ONNX has no op for, and for those with nested graphs.
std::optional<OnnxCall> spell(const Node& node, ConstantExpressions& constants);

// The oldest opset that has the call for these outputs, perhaps in its older form.
std::optional<int64_t> needed_opset(const OnnxCall& call, const Types& outputs);

// The call as the opset has it, which is not older than needed.
OnnxCall in_opset(OnnxCall call, int64_t opset);

}  // namespace tenon::onnx
