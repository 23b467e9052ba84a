// custom_call.h — nodes of ops that we do not know, written as they were read.
#pragma once

#include "frontends/onnx/write/words.h"

namespace tenon::onnx {

OnnxCall call_of_custom(const Node& custom);

// Attributes as the bytes of their messages.
std::vector<std::string> messages_of(const Node& custom);

// The names of all outputs, of which those that are left out are empty.
std::vector<std::string> with_omitted_outputs(const Node& custom, std::vector<std::string> outputs);

}  // namespace tenon::onnx
