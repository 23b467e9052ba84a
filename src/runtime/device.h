// device.h — where the kernels of a program run: a backend implements this beside its code generator.
#pragma once

#include <cstdlib>
#include <memory>
#include <span>
#include <string>

#include "runtime/execution_plan.h"

namespace tenon::runtime {

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], FreeMemory>;  // aligned to cache lines

// So many bytes, in whole cache lines, for each of `threads`. What the machine does not have is a user_error.
Memory allocate(int64_t bytes, int64_t threads = 1);

// What one run needs besides the memory of its values.
class Workspace {
 public:
  virtual ~Workspace() = default;
};

// A kernel whose code was loaded. Several runs may launch it at once, each with its own workspace.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;

  // `buffers` are those that the step reads, then those that it writes. False where what the kernel requires
  // of elements does not hold.
  virtual bool launch(const KernelStep& step, const Launch& launch, std::span<std::byte* const> buffers,
                      int threads, Workspace& workspace) const = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::unique_ptr<LoadedKernel> load(const KernelCode& code) = 0;
  virtual std::unique_ptr<Workspace> make_workspace() const = 0;
};

}  // namespace tenon::runtime
