// device.h — where the kernels of a program run: a backend implements this beside its code generator.
#pragma once

#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/execution_plan.h"

namespace tenon::runtime {

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], FreeMemory>;  // aligned to cache lines

// So many bytes, in whole cache lines, for each of `threads`. What the machine does not have is a user_error.
Memory allocate(int64_t bytes, int64_t threads = 1);

// What one run needs besides the memory of its values. On a device with memory of its own, what is launched
// and copied in it happens in that order, after these calls have returned.
class Workspace {
 public:
  virtual ~Workspace() = default;

  size_t step = 0;  // of the program that is being launched
};

// How a GPU runs one region of a kernel, by what its driver says.
struct RegionLaunch {
  int64_t blocks = 0, threads = 0;        // of the grid, and of a block
  int64_t registers = 0;                  // of a thread
  int64_t spilled_bytes = 0;              // of a thread, which are in memory instead
  int64_t shared_bytes = 0;               // of a block
  int64_t blocks_per_multiprocessor = 0;  // at once, at most
};

// A kernel whose code was loaded. Several runs may launch it at once, each with its own workspace.
class LoadedKernel {
 public:
  virtual ~LoadedKernel() = default;

  // `buffers` are those that the step reads, then those that it writes. False where what the kernel requires
  // of elements does not hold, if that is known already: else DeviceMemory::finish says so.
  virtual bool launch(const KernelStep& step, const Launch& launch, std::span<std::byte* const> buffers,
                      int threads, Workspace& workspace) const = 0;

  // Of its regions that have iterations; none on a CPU.
  virtual std::vector<RegionLaunch> region_launches(const KernelStep&, const Launch&) const { return {}; }
};

// One of several launches that are repeated together.
struct RepeatedLaunch {
  const LoadedKernel* kernel;
  const KernelStep* step;
  Launch launch;
  std::vector<std::byte*> buffers;  // as those of LoadedKernel::launch
  std::vector<int64_t> bytes;       // of each
  size_t number;                    // of the step in the program
};

// Launches as one, in an order that gives the same: those that do not need each other may run at once.
class LaunchGraph {
 public:
  virtual ~LaunchGraph() = default;

  // From the next launch on. No memory may overlap then that did not before.
  virtual void set_buffer(size_t launch, size_t buffer, std::byte* memory) = 0;
  virtual void launch(Workspace& workspace) = 0;
};

// Memory that grows, at the same address where the device can.
class GrowingMemory {
 public:
  virtual ~GrowingMemory() = default;

  // So many bytes at least, aligned to 256 bytes. What they hold is lost where the address is another than
  // before. What the device does not have is a user_error.
  virtual std::byte* reserve(int64_t bytes) = 0;
};

// Of a device whose kernels use memory of its own, which the host reaches by copies alone.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // Aligned to 256 bytes. What the device does not have is a user_error.
  virtual std::shared_ptr<std::byte[]> allocate(int64_t bytes) = 0;
  // The same for what is launched in the workspace from now on, to be freed behind the last of that, and
  // before the workspace: neither waits for the device.
  virtual std::shared_ptr<std::byte[]> allocate_for(int64_t bytes, Workspace& workspace) = 0;
  virtual std::unique_ptr<GrowingMemory> make_growing() = 0;
  // What a caller's pointer names that is not memory of this device: "memory of the host", "memory of
  // cuda:1"; empty where it is.
  virtual std::string describe_foreign(const std::byte* memory) const = 0;

  // What is launched and copied from now on goes to this stream of the caller's, such as a CUstream; null:
  // one of the workspace's own. It comes after what was launched in the workspace before. A stream of another
  // device is a user_error.
  virtual void use_stream(Workspace& workspace, void* stream) = 0;
  // A stream for callers of this thread that have none of their own.
  virtual void* default_stream() = 0;
  // Marks the end of what was launched, and leaves the caller's stream.
  virtual void leave_stream(Workspace& workspace) = 0;
  // Whether all has ended that was launched before the stream was left.
  virtual bool has_ended(Workspace& workspace) const = 0;
  // `from` may change once this returns.
  virtual void upload(std::byte* to, const std::byte* from, int64_t bytes, Workspace& workspace) = 0;
  // `to` has the elements once this returns.
  virtual void download(std::byte* to, const std::byte* from, int64_t bytes, Workspace& workspace) = 0;
  virtual void copy(std::byte* to, const std::byte* from, int64_t bytes, Workspace& workspace) = 0;
  // Waits for all that was launched.
  virtual void wait(Workspace& workspace) = 0;
  // The same before what was launched loses the memory that it uses, whatever became of it.
  virtual void settle(Workspace& workspace) noexcept = 0;
  // The same at the end of a run. The step whose kernel met elements that it cannot compute with, if any.
  virtual std::optional<size_t> finish(Workspace& workspace) = 0;
  // Seconds from one to the other in what was launched, by the clock of the device; the second waits.
  virtual void start_clock(Workspace& workspace) = 0;
  virtual double stop_clock(Workspace& workspace) = 0;
  // For this workspace alone. The steps and the numbers of the launches must live as long.
  virtual std::unique_ptr<LaunchGraph> make_graph(const std::vector<RepeatedLaunch>& launches,
                                                  Workspace& workspace) = 0;
};

// Memory that is allocated anew where there is too little. Sizes that grow from run to run need none every
// time.
class ReallocatedMemory : public GrowingMemory {
 public:
  explicit ReallocatedMemory(DeviceMemory& device) : device_(device) {}
  std::byte* reserve(int64_t bytes) override;

 private:
  DeviceMemory& device_;
  std::shared_ptr<std::byte[]> memory_;
  int64_t bytes_ = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::unique_ptr<LoadedKernel> load(const KernelCode& code) = 0;
  virtual std::unique_ptr<Workspace> make_workspace() const = 0;
  virtual DeviceMemory* own_memory() { return nullptr; }  // null where kernels use that of the host
};

}  // namespace tenon::runtime
