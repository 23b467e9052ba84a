// kernel_function.h — what generated code looks like from outside.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::runtime {

// Runs the iterations of one region of a kernel from begin to before end. `buffers` are the inputs, then the
// outputs; `sizes` what its symbols stand for; `scratch` memory of the calling thread. Returns 0, or
// something else where what the kernel requires does not hold.
using KernelFunction = int64_t (*)(std::byte* const* buffers, const int64_t* sizes, std::byte* scratch,
                                   int64_t begin, int64_t end);

}  // namespace tenon::runtime
