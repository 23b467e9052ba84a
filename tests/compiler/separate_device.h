// separate_device.h — a device of tests with memory of its own, which interprets the kernels of a GPU.
#pragma once

#include <atomic>
#include <cstring>
#include <functional>
#include <mutex>

#include "codegen/cuda/emit.h"
#include "codegen/cuda/occupancy.h"
#include "compiler/compile_context.h"
#include "compiler/interpreting_device.h"
#include "schedule/cuda/schedule_kernel.h"

namespace tenon {

// A stream of the caller's, in which nothing happens before it is waited for.
class PendingStream {
 public:
  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  void synchronize() {
    const std::lock_guard lock(mutex_);
    for (const std::function<void()>& work : std::exchange(work_, {}))
      work();
  }
  bool is_idle() const {
    const std::lock_guard lock(mutex_);
    return work_.empty();
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::function<void()>> work_;
};

// A device with memory of its own: kernels may use that alone, and the host may not. What it holds is no
// number before it is written. Streams are PendingStreams.
class SeparateDevice : public InterpretingDevice,
                       public std::enable_shared_from_this<SeparateDevice>,
                       private runtime::DeviceMemory {
 public:
  std::unique_ptr<runtime::LoadedKernel> load(const runtime::KernelCode& code) override {
    return std::make_unique<Kernel>(*this, code.bytes);
  }
  std::unique_ptr<runtime::Workspace> make_workspace() const override {
    ++workspaces;
    return std::make_unique<Work>();
  }
  runtime::DeviceMemory* own_memory() override { return this; }

  std::atomic<int> graphs = 0;              // that were made
  mutable std::atomic<int> workspaces = 0;  // the same

 private:
  class Kernel : public runtime::LoadedKernel {
   public:
    Kernel(const SeparateDevice& device, const std::string& text) : device_(device), kernel_(text) {}

    bool launch(const runtime::KernelStep& step, const runtime::Launch& launch,
                std::span<std::byte* const> buffers, int threads,
                runtime::Workspace& workspace) const override {
      for (const std::byte* buffer : buffers)
        CHECK(device_.owns(buffer), "a kernel is given memory of the host");
      Work& work = work_of(workspace);
      const size_t count = step.sizes.size() + 2 * step.regions.size() + 1;
      enqueue(work, [this, &work, &step, threads, number = workspace.step,
                     numbers = std::vector(launch.sizes(), launch.sizes() + count),
                     buffers = std::vector(buffers.begin(), buffers.end())] {
        try {
          kernel_.launch(step, runtime::Launch(step, numbers.data()), buffers, threads, work);
        } catch (const UserError&) {  // as elements are: it is known when the run ends
          work.failed = number;
        }
      });
      return true;
    }

    // As if each iteration were a block of a warp, of which there is room for 16.
    std::vector<runtime::RegionLaunch> region_launches(const runtime::KernelStep& step,
                                                       const runtime::Launch& launch) const override {
      std::vector<runtime::RegionLaunch> launches;
      for (size_t i = 0; i < step.regions.size(); ++i)
        launches.push_back({.blocks = launch.iterations(i),
                            .threads = 32,
                            .registers = 20,
                            .shared_bytes = launch.scratch(i),
                            .blocks_per_multiprocessor = 16});
      return launches;
    }

   private:
    const SeparateDevice& device_;
    InterpretedKernel kernel_;
  };

  static constexpr int kUnwritten = 0xff;

  struct Work : runtime::Workspace {
    PendingStream* stream = nullptr;  // of the caller's, where there is one
    PendingStream* left = nullptr;    // the last of them
    std::optional<size_t> failed;
  };
  static Work& work_of(runtime::Workspace& workspace) { return static_cast<Work&>(workspace); }
  static void enqueue(Work& work, std::function<void()> what) {
    if (work.stream != nullptr)
      return work.stream->add(std::move(what));
    what();
  }

  std::shared_ptr<std::byte[]> allocate(int64_t bytes) override {
    const auto count = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    std::shared_ptr<std::byte[]> memory(new std::byte[count],
                                        [device = shared_from_this()](std::byte* freed) {
                                          const std::lock_guard lock(device->mutex_);
                                          device->blocks_.erase(freed);
                                          delete[] freed;
                                        });
    std::memset(memory.get(), kUnwritten, count);
    const std::lock_guard lock(mutex_);
    blocks_.emplace(memory.get(), count);
    return memory;
  }
  // It is freed behind what is launched.
  std::shared_ptr<std::byte[]> allocate_for(int64_t bytes, runtime::Workspace& workspace) override {
    const std::shared_ptr<std::byte[]> memory = allocate(bytes);
    return {memory.get(), [memory, &work = work_of(workspace)](std::byte*) { enqueue(work, [memory] {}); }};
  }
  std::unique_ptr<runtime::GrowingMemory> make_growing() override {
    return std::make_unique<runtime::ReallocatedMemory>(*own_memory());
  }
  std::string describe_foreign(const std::byte* memory) const override {
    return owns(memory) ? "" : "memory of the host";
  }
  void* default_stream() override {
    thread_local PendingStream stream;
    return &stream;
  }
  void use_stream(runtime::Workspace& workspace, void* stream) override {
    Work& work = work_of(workspace);
    work.stream = static_cast<PendingStream*>(stream);
    if (work.left != nullptr && work.left != work.stream)
      work.left->synchronize();
  }
  void leave_stream(runtime::Workspace& workspace) override {
    Work& work = work_of(workspace);
    work.left = work.stream->is_idle() ? nullptr : work.stream;
    work.stream = nullptr;
  }
  bool has_ended(runtime::Workspace& workspace) const override {
    const PendingStream* left = work_of(workspace).left;
    return left == nullptr || left->is_idle();
  }
  void upload(std::byte* to, const std::byte* from, int64_t bytes, runtime::Workspace& workspace) override {
    CHECK(owns(to) && !owns(from), "an upload is none");
    enqueue(work_of(workspace), [to, copied = std::vector(from, from + bytes)] {
      std::memcpy(to, copied.data(), copied.size());
    });
  }
  void download(std::byte* to, const std::byte* from, int64_t bytes, runtime::Workspace& workspace) override {
    CHECK(!owns(to) && owns(from), "a download is none");
    wait(workspace);
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void copy(std::byte* to, const std::byte* from, int64_t bytes, runtime::Workspace& workspace) override {
    CHECK(owns(to) && owns(from), "a copy is not within the device");
    enqueue(work_of(workspace), [=] { std::memmove(to, from, static_cast<size_t>(bytes)); });
  }
  void wait(runtime::Workspace& workspace) override {
    Work& work = work_of(workspace);
    for (PendingStream* stream : {std::exchange(work.left, nullptr), work.stream})
      if (stream != nullptr)
        stream->synchronize();
  }
  void settle(runtime::Workspace& workspace) noexcept override { wait(workspace); }
  void start_clock(runtime::Workspace&) override {}
  double stop_clock(runtime::Workspace&) override { return 1; }
  std::optional<size_t> finish(runtime::Workspace& workspace) override {
    wait(workspace);
    return std::exchange(work_of(workspace).failed, std::nullopt);
  }

  // One after the other.
  struct Graph : runtime::LaunchGraph {
    explicit Graph(std::vector<runtime::RepeatedLaunch> all) : launches(std::move(all)) {}

    void set_buffer(size_t launch, size_t buffer, std::byte* memory) override {
      launches[launch].buffers[buffer] = memory;
    }
    void launch(runtime::Workspace& workspace) override {
      for (const runtime::RepeatedLaunch& each : launches) {
        workspace.step = each.number;
        each.kernel->launch(*each.step, each.launch, each.buffers, 1, workspace);
      }
    }

    std::vector<runtime::RepeatedLaunch> launches;
  };
  std::unique_ptr<runtime::LaunchGraph> make_graph(const std::vector<runtime::RepeatedLaunch>& launches,
                                                   runtime::Workspace&) override {
    ++graphs;
    return std::make_unique<Graph>(launches);
  }

  bool owns(const std::byte* memory) const {
    const std::lock_guard lock(mutex_);
    const auto after = blocks_.upper_bound(memory);
    return after != blocks_.begin() && memory <= std::prev(after)->first + std::prev(after)->second;
  }

  mutable std::mutex mutex_;
  std::map<const std::byte*, size_t> blocks_;
};

// The same context for programs that run on such a device.
inline compiler::CompileContext on_separate_device(compiler::CompileContext context) {
  static const compiler::Backend backend = {.name = "separate",
                                            .schedule = schedule::cuda::schedule_kernel,
                                            .schedule_nest = schedule::cuda::schedule_nest,
                                            .scratch_bytes = codegen::cuda::shared_bytes,
                                            .occupancy =
                                                [](const loops::Kernel& kernel, const Target& target) {
                                                  return codegen::cuda::blocks_per_multiprocessor(
                                                      kernel, *target.gpu);
                                                },
                                            .generate = kernel_as_text,
                                            .make_device = [](int) -> std::shared_ptr<runtime::Device> {
                                              return std::make_shared<SeparateDevice>();
                                            },
                                            .has_own_memory = true};
  context.backend = &backend;
  context.target = beside(context.target, gpu_named("sm_90"));
  return context;
}

}  // namespace tenon
