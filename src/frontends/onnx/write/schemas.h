// schemas.h — what ONNX lets each op take and give, opset by opset: which opset a call needs.
#pragma once

#include "frontends/onnx/write/words.h"

namespace tenon::onnx {

constexpr int64_t kOldestWritten = 13;  // of the opsets that we write: older ones have axes as attributes

// "ai.onnx.ml.LabelEncoder" is LabelEncoder of domain ai.onnx.ml; names without a domain are standard.
struct OpName {
  std::string_view domain, op_type;
};
OpName split_name(std::string_view name);
OpName split_name(const OnnxCall& call);

// The IR version that came with an opset of the standard domain.
int64_t ir_version_of(int64_t opset);

// The oldest opset of its domain, of those we write, in which the op has such inputs, attributes and outputs;
// nothing when there is none.
std::optional<int64_t> oldest_opset(const OnnxCall& call, const Types& outputs);

}  // namespace tenon::onnx
