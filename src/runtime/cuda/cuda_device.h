// cuda_device.h — kernels on an NVIDIA GPU, through the CUDA driver.
#pragma once

#include "runtime/device.h"

namespace tenon::runtime {

struct CudaOptions {
  // Waits for each kernel, so that an error names the nodes that it computes: TENON_CUDA_CHECK=1.
  bool checks_kernels = false;
};

// Device `number` of this machine. Its kernels are cubins with a function for each region: phase_0, phase_1,
// …, whose parameters are the buffers, the sizes as 64-bit integers, where a kernel writes what it is given
// last if what it requires does not hold (an int*), and that (an int). It has memory of its own. No driver or
// no such device is a user_error; what fails while kernels run is a cuda::DeviceError.
std::shared_ptr<Device> make_cuda_device(int number, const CudaOptions& options = {});

}  // namespace tenon::runtime
