#include "runtime/cpu/cpu_device.h"

#include <atomic>

#include "base/subnormals.h"
#include "runtime/cpu/thread_pool.h"
#include "runtime/cpu/work_stealing_range.h"

namespace tenon::runtime {
namespace {

struct CpuWorkspace : Workspace {
  Memory scratch = nullptr;
  int64_t scratch_bytes = 0;
  WorkStealingRange shares = {};  // of the kernel that runs

  // Scratch memory for each of so many threads; returns the bytes from one to the next.
  int64_t reserve(int64_t bytes, int64_t threads) {
    const int64_t each = padded_bytes(bytes);
    if (each * threads > scratch_bytes) {
      scratch = allocate(bytes, threads);
      scratch_bytes = each * threads;
    }
    return each;
  }
};

class CpuKernel : public LoadedKernel {
 public:
  explicit CpuKernel(std::vector<KernelFunction> functions) : functions_(std::move(functions)) {}

  bool launch(const KernelStep& step, const Launch& launch, std::span<std::byte* const> buffers, int threads,
              Workspace& workspace) const override {
    for (size_t i = 0; i < functions_.size(); ++i)
      if (!run_region(i, step, launch, buffers, threads, static_cast<CpuWorkspace&>(workspace)))
        return false;
    return true;
  }

 private:
  bool run_region(size_t region, const KernelStep& step, const Launch& launch,
                  std::span<std::byte* const> buffers, int most_threads, CpuWorkspace& workspace) const {
    const int64_t iterations = launch.iterations(region);
    const int64_t threads = std::max<int64_t>(
        std::min({int64_t{most_threads}, launch.work() / kElementsPerThread, iterations}), 1);
    const int64_t each = workspace.reserve(launch.scratch(region), threads);
    const bool shares =
        threads > 1 && iterations > threads && iterations <= WorkStealingRange::kMostIterations;
    if (shares)
      workspace.shares.share_out(iterations, threads);
    std::atomic<bool> failed = false;
    const auto run = [&](int64_t task, int) {
      std::optional<FlushSubnormals> flush;
      if (step.flushes)
        flush.emplace();
      const auto run_iterations = [&](int64_t begin, int64_t end) {
        if (functions_[region](buffers.data(), launch.sizes(), workspace.scratch.get() + each * task, begin,
                               end) != 0)
          failed = true;
      };
      if (!shares)
        return run_iterations(iterations * task / threads, iterations * (task + 1) / threads);
      for (WorkStealingRange::Iterations next; !(next = workspace.shares.take(task)).empty();)
        run_iterations(next.begin, next.end);
    };
    if (threads == 1)
      run(0, 0);
    else
      shared_pool(most_threads).run(threads, run);
    return !failed;
  }

  std::vector<KernelFunction> functions_;  // of its regions
};

class CpuDevice : public Device {
 public:
  explicit CpuDevice(std::unique_ptr<CodeLoader> loader) : loader_(std::move(loader)) {}

  std::unique_ptr<LoadedKernel> load(const KernelCode& code) override {
    return std::make_unique<CpuKernel>(loader_->load(code));
  }
  std::unique_ptr<Workspace> make_workspace() const override { return std::make_unique<CpuWorkspace>(); }

 private:
  std::unique_ptr<CodeLoader> loader_;
};

}  // namespace

std::shared_ptr<Device> make_cpu_device(std::unique_ptr<CodeLoader> loader) {
  return std::make_shared<CpuDevice>(std::move(loader));
}

}  // namespace tenon::runtime
