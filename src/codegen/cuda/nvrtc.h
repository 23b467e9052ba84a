// nvrtc.h — CUDA C++ to machine code for a GPU, by NVIDIA's NVRTC. The library is loaded when it is first
// needed; a program that was compiled runs without it.
#pragma once

#include <optional>

#include "codegen/cuda/cuda_text.h"
#include "codegen/object_cache.h"
#include "target/gpu.h"

namespace tenon::codegen {

// "13.0 at /usr/local/cuda/lib64/libnvrtc.so.13". That it is not there is a user_error.
std::string describe_nvrtc();

// A cubin for the architecture of `gpu`. With a cache, it comes from there where it can. May run on several
// threads at once. Text that does not compile is an InternalError with the lines that are wrong; that there
// is no NVRTC, or that it does not know the architecture, a user_error.
runtime::KernelCode compile_cuda(const CudaText& text, const Gpu& gpu,
                                 const std::optional<ObjectCache>& cache = std::nullopt);

}  // namespace tenon::codegen
