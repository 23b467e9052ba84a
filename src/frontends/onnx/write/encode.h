// encode.h — the messages of an ONNX file, as bytes, from the field numbers of onnx.proto3.
#pragma once

#include "frontends/onnx/write/draft.h"

namespace tenon::onnx {

// Where the elements of a weight are, if not in its message.
struct ExternalData {
  std::string location;  // a file beside the model
  uint64_t offset = 0, size = 0;
};

// The bytes of a TensorProto.
std::string encode_head(const DraftInitializer& weight);    // without its elements
std::string encode_weight(const DraftInitializer& weight);  // with its elements
std::string encode_weight(const DraftInitializer& weight, const ExternalData& elements);

// The bytes of a ModelProto; `initializers` are TensorProtos.
std::string encode_model(const Draft& draft, const std::vector<std::string>& initializers);

}  // namespace tenon::onnx
