// signatures.h — how many inputs and which attributes ONNX lets each op have, opset by opset.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "frontends/onnx/proto.h"

namespace tenon::onnx {

bool has_signature(std::string_view domain, std::string_view op_type);

// That a node of an op that has a signature takes more inputs than its op, or an attribute that its op has
// not, is the user's fault.
void check_signature(const NodeProto& node, int64_t opset);

// Whether an op that has a signature takes so many inputs and these attributes in an opset; one that is newer
// takes none.
bool allows(std::string_view domain, std::string_view op_type, int64_t opset, size_t inputs,
            std::span<const std::string_view> attributes);

// The opsets that have an op with the signature, and the meaning, that it has in this one.
struct OpsetRange {
  int64_t since, until;
};
// Nothing for an op that has no signature there.
std::optional<OpsetRange> same_opsets(std::string_view domain, std::string_view op_type, int64_t opset);

}  // namespace tenon::onnx
