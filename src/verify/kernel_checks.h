// kernel_checks.h — which kernel of a program is wrong, and whether its schedule is or the code generated
// for it.
#pragma once

#include <functional>
#include <optional>

#include "loops/kernel.h"
#include "target/target.h"
#include "tensor/tensor.h"

namespace tenon {

enum class KernelFault : uint8_t { Schedule, CodeGeneration };
std::string_view name(KernelFault fault);  // schedule, code generation

struct WrongKernel {
  size_t kernel = 0;  // which of them
  KernelFault fault = KernelFault::Schedule;
  double error = 0;
  std::string detail;
};

struct KernelChecksOptions {
  double tolerance = 1e-4;
  std::function<void(size_t kernel)> before_kernel = nullptr;
  // What generated code gives for inputs, with these sizes; nothing where none can be generated.
  std::function<std::optional<std::vector<Tensor>>(const loops::Kernel&, const std::vector<Tensor>&,
                                                   const std::map<std::string, int64_t>&)>
      run_code = nullptr;  // null: as it is compiled for the target, which must be this machine
};

// The first of the scheduled kernels that, interpreted, does not compute what its unscheduled nest does, or
// whose code does not compute what it is interpreted to, on inputs made by rule. Kernels that call routines,
// that take no such inputs, or that read other buffers than their nest, as packed weights, are interpreted
// against nothing; their code is still checked where they can be interpreted.
std::optional<WrongKernel> find_wrong_kernel(const std::vector<loops::Kernel>& unscheduled,
                                             const std::vector<loops::Kernel>& scheduled,
                                             const Target& target, const KernelChecksOptions& options = {});

}  // namespace tenon
