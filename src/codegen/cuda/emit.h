// emit.h — kernels as CUDA C++ text, one __global__ function for each region.
//
//   kernel scale(x: f32[4096]) -> (y: f32[4096]) { for b in 0..4 block(256) {
//     for i in 1024*b..1024*b+1024 thread { y[i] = x[i] * 2 } } }
//
// becomes
//
//   extern "C" __global__ void __launch_bounds__(256, 2) phase_0(const float* __restrict__ x,
//       float* __restrict__ y, int* failure, const int step) {
//     const int thread = threadIdx.x;
//     const int b = blockIdx.x;
//     { const int i = 1024 * b + 4 * thread;
//       …
//
// The arguments are the inputs, the outputs, the sizes in the order of Kernel::size_symbols(), and where to
// write which step failed. The text includes nothing, so that it compiles as fast as it can.
#pragma once

#include "codegen/cuda/cuda_text.h"
#include "loops/kernel.h"
#include "loops/parallel_regions.h"

namespace tenon::codegen::cuda {

CudaText emit_cuda(const loops::Kernel& kernel);

// The dynamic shared memory that one iteration of the region needs, in bytes. A thread block needs as much
// for each of its LaunchConfiguration::iterations_per_block.
Dim shared_bytes(const loops::ParallelRegion& region);

// How the region is launched.
runtime::LaunchConfiguration shape_of(const loops::ParallelRegion& region);

}  // namespace tenon::codegen::cuda
