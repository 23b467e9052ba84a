// import_proto.h — a model that somebody has as messages, not as a file, as a graph.
#pragma once

#include <memory>
#include <unordered_map>

#include "frontends/onnx/proto.h"
#include "ir/graph.h"
#include "tensor/literal.h"

namespace tenon::onnx {

// The elements of tensors that are in no file, by their messages.
using TensorElements = std::unordered_map<const TensorProto*, Literal>;

// As read_onnx of import.h. Errors name the model's file; nothing is read of it but what the messages view.
std::unique_ptr<Graph> read_onnx(const Model& model, const TensorElements& elements);

}  // namespace tenon::onnx
