// provider.h — what ONNX Runtime asks for the graphs of one session: which nodes are taken, and what runs in
// their place.
#pragma once

#include "onnxruntime/api.h"

namespace tenon::onnxruntime {

constexpr const char* kProviderName = "TenonExecutionProvider";

OrtEp* make_provider(const Ort::ConstSessionOptions& options, Ort::Logger logger);
void free_provider(OrtEp* provider);

}  // namespace tenon::onnxruntime
