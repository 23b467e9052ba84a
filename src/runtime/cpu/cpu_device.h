// cpu_device.h — kernels as functions of this process, whose iterations threads share.
#pragma once

#include "runtime/cpu/kernel_function.h"
#include "runtime/device.h"

namespace tenon::runtime {

// Loads machine code; it stays as long as this.
class CodeLoader {
 public:
  virtual ~CodeLoader() = default;

  // One function for each region of the kernel. Code that cannot be loaded is an InternalError.
  virtual std::vector<KernelFunction> load(const KernelCode& code) = 0;
};

std::shared_ptr<Device> make_cpu_device(std::unique_ptr<CodeLoader> loader);

}  // namespace tenon::runtime
