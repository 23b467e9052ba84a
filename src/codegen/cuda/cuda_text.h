// cuda_text.h — a kernel as CUDA C++, on its way from the emitter to the compiler.
#pragma once

#include <string>
#include <vector>

#include "runtime/step.h"

namespace tenon::codegen {

struct CudaText {
  std::string text;  // a __global__ function for each region: phase_0, phase_1, …
  std::vector<runtime::LaunchConfiguration> shapes;  // of each region
};

}  // namespace tenon::codegen
