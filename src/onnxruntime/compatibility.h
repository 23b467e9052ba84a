// compatibility.h — what ONNX Runtime keeps in a model with a saved program about the machines that run it,
// and what that says of this one.
#pragma once

#include "onnxruntime/api.h"
#include "runtime/program_file.h"

namespace tenon::onnxruntime {

// The format of the program, and the targets that it has code for.
std::string describe_compatibility(const runtime::ProgramFile& program);

// Of text that says something else, "not applicable".
OrtCompiledModelCompatibility judge_compatibility(std::string_view description);

}  // namespace tenon::onnxruntime
