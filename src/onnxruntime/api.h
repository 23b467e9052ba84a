// api.h — ONNX Runtime's interface, which it hands to the plug-in when that is registered: nothing is linked.
#pragma once

#define ORT_API_MANUAL_INIT
#include <onnxruntime_cxx_api.h>

namespace tenon::onnxruntime {

// The first that hands graphs to plug-ins, in ONNX Runtime 1.23. Later ones have all that it has.
constexpr uint32_t kApiVersion = 23;

}  // namespace tenon::onnxruntime
