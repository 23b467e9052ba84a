#include "runtime/cuda/cuda_device.h"

#include <atomic>
#include <limits>

#include "base/units.h"
#include "runtime/cuda/cuda_graph.h"
#include "runtime/cuda/staging.h"
#include "runtime/cuda/virtual_memory.h"
#include "target/cluster.h"

namespace tenon::runtime {
namespace {

using cuda::Context;
using cuda::CurrentContext;
using cuda::driver;
using SharedContext = std::shared_ptr<const Context>;

constexpr int64_t kMostBlocks = std::numeric_limits<int32_t>::max();  // of a grid

cuda::CUdeviceptr address_of(const std::byte* memory) { return reinterpret_cast<cuda::CUdeviceptr>(memory); }

std::string bytes_in_words(int64_t bytes) { return format_bytes(static_cast<double>(bytes)); }

// Where kernels write the number of their step, counted from 1, if what they require does not hold. In
// memory of the host, so that looking at it needs no copy.
class FailureWord {
 public:
  explicit FailureWord(const SharedContext& context)
      : memory_(cuda::allocate_pinned(context, sizeof(int32_t))) {
    context->check(driver().cuMemHostGetDevicePointer(&on_device_, memory_.get(), 0), "map memory");
    word() = 0;
  }

  const cuda::CUdeviceptr& on_device() const { return on_device_; }

  std::optional<size_t> take() {
    const int32_t number = word().exchange(0);
    return number == 0 ? std::nullopt : std::optional<size_t>(static_cast<size_t>(number) - 1);
  }

 private:
  std::atomic_ref<int32_t> word() { return std::atomic_ref(*static_cast<int32_t*>(memory_.get())); }

  cuda::PinnedMemory memory_;
  cuda::CUdeviceptr on_device_ = 0;
};

// What one run has on the device. It is in a stream of its own, but while it is in one of the caller's.
struct CudaWorkspace : Workspace {
  explicit CudaWorkspace(const SharedContext& context)
      : own_stream(cuda::make_stream(context)),
        failure(context),
        staging(context),
        left(cuda::make_event(context)) {}

  cuda::Stream own_stream;
  cuda::CUstream stream = own_stream.get();
  FailureWord failure;
  cuda::Staging staging;
  cuda::Event left;         // the end of what was launched before it left a stream of the caller's
  bool is_awaited = false;  // that
  cuda::Event started = {}, stopped = {};
  std::vector<void*> arguments = {};  // of the kernel that is launched
};

CudaWorkspace& cuda_workspace(Workspace& workspace) { return static_cast<CudaWorkspace&>(workspace); }

// A function of a kernel, and how much dynamic shared memory its blocks may have.
struct RegionFunction {
  cuda::CUfunction function;
  int64_t most_shared_bytes;
  LaunchConfiguration shape;
};

// Functions may have 48 KiB, and more where they ask for it.
RegionFunction find_function(const Context& context, cuda::CUmodule module, size_t region,
                             const LaunchConfiguration& shape) {
  const std::string name = fmt::format("phase_{}", region);
  const auto check = [&](cuda::CUresult result) { context.check(result, "load " + name); };
  RegionFunction found{.function = nullptr, .most_shared_bytes = 0, .shape = shape};
  check(driver().cuModuleGetFunction(&found.function, module, name.c_str()));
  int most = 0, of_its_own = 0;
  check(driver().cuDeviceGetAttribute(&most, cuda::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                      context.device()));
  check(driver().cuFuncGetAttribute(&of_its_own, cuda::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, found.function));
  check(driver().cuFuncSetAttribute(found.function, cuda::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    most - of_its_own));
  if (shape.blocks_per_iteration > kPortableBlocksOfCluster)
    check(driver().cuFuncSetAttribute(found.function,
                                      cuda::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  found.most_shared_bytes = most - of_its_own;
  return found;
}

struct Grid {
  unsigned blocks, threads, shared_bytes;
};

// A kernel's code, as the driver loaded it.
class CudaKernel : public LoadedKernel {
 public:
  CudaKernel(SharedContext context, const CudaOptions& options, const KernelCode& code)
      : context_(std::move(context)), options_(options) {
    CHECK(code.shapes.size() == code.regions, "{} shapes for {} regions", code.shapes.size(), code.regions);
    const CurrentContext current(*context_);
    cuda::CUmodule module = nullptr;
    context_->check(driver().cuModuleLoadData(&module, code.bytes.data()), "load a kernel");
    module_ = {context_, module};
    for (size_t i = 0; i < code.regions; ++i)
      regions_.push_back(find_function(*context_, module, i, code.shapes[i]));
  }

  // The launches of its regions in a graph, with the numbers that the arguments of a launch have.
  std::vector<cuda::GraphLaunch> graph_launches(const RepeatedLaunch& repeated,
                                                const CudaWorkspace& workspace) const {
    cuda::GraphLaunch launch{};
    const size_t reads = repeated.step->reads.size();
    for (size_t i = 0; i < repeated.buffers.size(); ++i) {
      launch.arguments.push_back(address_of(repeated.buffers[i]));
      (i < reads ? launch.reads : launch.writes).push_back({launch.arguments.back(), repeated.bytes[i]});
    }
    for (size_t i = 0; i < repeated.step->sizes.size(); ++i)
      launch.arguments.push_back(static_cast<uint64_t>(repeated.launch.sizes()[i]));
    launch.arguments.push_back(workspace.failure.on_device());
    launch.arguments.push_back(repeated.number + 1);
    std::vector<cuda::GraphLaunch> launches;
    for (size_t i = 0; i < regions_.size(); ++i)
      if (repeated.launch.iterations(i) > 0) {
        const Grid grid = grid_of(i, *repeated.step, repeated.launch);
        launch.function = regions_[i].function;
        launch.blocks = grid.blocks;
        launch.threads = grid.threads;
        launch.shared_bytes = grid.shared_bytes;
        launches.push_back(launch);
      }
    return launches;
  }

  std::vector<RegionLaunch> region_launches(const KernelStep& step, const Launch& launch) const override {
    const CurrentContext current(*context_);
    std::vector<RegionLaunch> launches;
    for (size_t i = 0; i < regions_.size(); ++i)
      if (launch.iterations(i) > 0)
        launches.push_back(describe_launch(regions_[i].function, grid_of(i, step, launch)));
    return launches;
  }

  bool launch(const KernelStep& step, const Launch& launch, std::span<std::byte* const> buffers, int,
              Workspace& workspace) const override {
    CudaWorkspace& own = cuda_workspace(workspace);
    const CurrentContext current(*context_);
    const int number = static_cast<int>(workspace.step) + 1;
    set_arguments(own, step, launch, buffers, number);
    for (size_t i = 0; i < regions_.size(); ++i)
      if (launch.iterations(i) > 0)
        start(i, step, launch, own);
    if (options_.checks_kernels)
      wait_for(step, own);
    return true;
  }

 private:
  // Pointers to what is passed: the driver copies it when the kernel is launched.
  static void set_arguments(CudaWorkspace& workspace, const KernelStep& step, const Launch& launch,
                            std::span<std::byte* const> buffers, const int& number) {
    std::vector<void*>& arguments = workspace.arguments;
    arguments.clear();
    const auto pass = [&](const auto& value) {
      arguments.push_back(const_cast<void*>(static_cast<const void*>(&value)));
    };
    for (std::byte* const& buffer : buffers)
      pass(buffer);
    for (size_t i = 0; i < step.sizes.size(); ++i)
      pass(launch.sizes()[i]);
    pass(workspace.failure.on_device());
    pass(number);
  }

  void start(size_t region, const KernelStep& step, const Launch& launch, CudaWorkspace& workspace) const {
    const Grid grid = grid_of(region, step, launch);
    context_->check(
        driver().cuLaunchKernel(regions_[region].function, grid.blocks, 1, 1, grid.threads, 1, 1,
                                grid.shared_bytes, workspace.stream, workspace.arguments.data(), nullptr),
        "launch a kernel");
  }

  Grid grid_of(size_t region, const KernelStep& step, const Launch& launch) const {
    const RegionFunction& function = regions_[region];
    const int64_t per_block = function.shape.iterations_per_block;
    int64_t blocks = ((launch.iterations(region) - 1) / per_block + 1) * function.shape.blocks_per_iteration;
    const int64_t shared = launch.scratch(region) * per_block;
    if (blocks > kMostBlocks)
      throw user_error("{}: {}: {} thread blocks are wanted, and {} is the most", context_->name(),
                       describe_sources(step.sources), blocks, kMostBlocks);
    if (shared > function.most_shared_bytes)
      throw user_error("{}: {}: a thread block needs {} of shared memory, and may have {}", context_->name(),
                       describe_sources(step.sources), bytes_in_words(shared),
                       bytes_in_words(function.most_shared_bytes));
    if (function.shape.is_persistent)
      blocks = std::min(blocks, blocks_at_once(function, shared).value_or(blocks));
    return {static_cast<unsigned>(blocks), static_cast<unsigned>(function.shape.threads),
            static_cast<unsigned>(shared)};
  }

  // Of the whole device. The blocks of a cluster are neighbours, whose groups are not all of one size: the
  // driver knows how many clusters find room. Where it cannot tell, nothing: any number of them computes all.
  std::optional<int64_t> blocks_at_once(const RegionFunction& function, int64_t shared_bytes) const {
    const auto threads = static_cast<unsigned>(function.shape.threads);
    const auto shared = static_cast<unsigned>(shared_bytes);
    const auto size = static_cast<unsigned>(function.shape.blocks_per_iteration);
    int count = 0;
    if (size > 1) {
      cuda::CUlaunchAttribute cluster{.id = cuda::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                                      .value = {.clusterDim = {size, 1, 1}, .others = {}}};
      const cuda::CUlaunchConfig configuration{.gridDimX = size,
                                               .gridDimY = 1,
                                               .gridDimZ = 1,
                                               .blockDimX = threads,
                                               .blockDimY = 1,
                                               .blockDimZ = 1,
                                               .sharedMemBytes = shared,
                                               .hStream = nullptr,
                                               .attrs = &cluster,
                                               .numAttrs = 1};
      if (driver().cuOccupancyMaxActiveClusters(&count, function.function, &configuration) !=
          cuda::CUDA_SUCCESS)
        return std::nullopt;
      return count > 0 ? std::optional(static_cast<int64_t>(count) * size) : std::nullopt;
    }
    int multiprocessors = 0;
    context_->check(driver().cuDeviceGetAttribute(
                        &multiprocessors, cuda::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, context_->device()),
                    "describe a device");
    context_->check(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&count, function.function,
                                                                         static_cast<int>(threads), shared),
                    "describe a kernel");
    return count > 0 ? std::optional(static_cast<int64_t>(count) * multiprocessors) : std::nullopt;
  }

  RegionLaunch describe_launch(cuda::CUfunction function, const Grid& grid) const {
    const auto check = [&](cuda::CUresult result) { context_->check(result, "describe a kernel"); };
    const auto attribute = [&](int which) {
      int value = 0;
      check(driver().cuFuncGetAttribute(&value, which, function));
      return value;
    };
    int resident = 0;
    check(driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
        &resident, function, static_cast<int>(grid.threads), grid.shared_bytes));
    return {.blocks = grid.blocks,
            .threads = grid.threads,
            .registers = attribute(cuda::CU_FUNC_ATTRIBUTE_NUM_REGS),
            .spilled_bytes = attribute(cuda::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES),
            .shared_bytes = grid.shared_bytes + attribute(cuda::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES),
            .blocks_per_multiprocessor = resident};
  }

  void wait_for(const KernelStep& step, CudaWorkspace& workspace) const {
    try {
      context_->check(driver().cuStreamSynchronize(workspace.stream), "run " + step.name());
    } catch (const cuda::DeviceError& error) {
      throw cuda::DeviceError(fmt::format("{}: {}", describe_sources(step.sources), error.what()));
    }
  }

  SharedContext context_;
  CudaOptions options_;
  cuda::Module module_;
  std::vector<RegionFunction> regions_;
};

class CudaLaunchGraph : public LaunchGraph {
 public:
  CudaLaunchGraph(const SharedContext& context, const std::vector<RepeatedLaunch>& launches,
                  const CudaWorkspace& workspace)
      : graph_(context, graph_launches(launches, workspace)) {}

  void set_buffer(size_t launch, size_t buffer, std::byte* memory) override {
    for (size_t i = firsts_[launch]; i < firsts_[launch + 1]; ++i)
      graph_.set_argument(i, buffer, address_of(memory));
  }

  void launch(Workspace& workspace) override { graph_.launch(cuda_workspace(workspace).stream); }

 private:
  std::vector<cuda::GraphLaunch> graph_launches(const std::vector<RepeatedLaunch>& launches,
                                                const CudaWorkspace& workspace) {
    std::vector<cuda::GraphLaunch> all;
    for (const RepeatedLaunch& launch : launches) {
      firsts_.push_back(all.size());
      for (cuda::GraphLaunch& each :
           static_cast<const CudaKernel*>(launch.kernel)->graph_launches(launch, workspace))
        all.push_back(std::move(each));
    }
    firsts_.push_back(all.size());
    return all;
  }

  std::vector<size_t> firsts_;  // in the graph, of each launch, and behind the last
  cuda::CudaGraph graph_;
};

// One by one, so that each can be waited for.
class CheckedLaunches : public LaunchGraph {
 public:
  explicit CheckedLaunches(std::vector<RepeatedLaunch> launches) : launches_(std::move(launches)) {}

  void set_buffer(size_t launch, size_t buffer, std::byte* memory) override {
    launches_[launch].buffers[buffer] = memory;
  }
  void launch(Workspace& workspace) override {
    for (const RepeatedLaunch& each : launches_) {
      workspace.step = each.number;
      each.kernel->launch(*each.step, each.launch, each.buffers, 1, workspace);
    }
  }

 private:
  std::vector<RepeatedLaunch> launches_;
};

class CudaDevice : public Device, public DeviceMemory {
 public:
  CudaDevice(int number, const CudaOptions& options)
      : context_(cuda::primary_context(number)), options_(options) {
    const CurrentContext current(*context_);
    pool_ = cuda::make_pool(context_);
  }

  std::unique_ptr<LoadedKernel> load(const KernelCode& code) override {
    return std::make_unique<CudaKernel>(context_, options_, code);
  }

  std::unique_ptr<Workspace> make_workspace() const override {
    const CurrentContext current(*context_);
    return std::make_unique<CudaWorkspace>(context_);
  }

  DeviceMemory* own_memory() override { return this; }

  std::shared_ptr<std::byte[]> allocate(int64_t bytes) override {
    const CurrentContext current(*context_);
    cuda::CUdeviceptr memory = 0;
    const cuda::CUresult result =
        driver().cuMemAlloc(&memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
    if (result == cuda::CUDA_ERROR_OUT_OF_MEMORY)
      cuda::refuse_memory(*context_, bytes);
    context_->check(result, "allocate memory");
    const auto free = [context = context_](std::byte* address) {
      context->free([&](const cuda::Driver& driver) { driver.cuMemFree(address_of(address)); });
    };
    return {reinterpret_cast<std::byte*>(memory), free};
  }

  std::shared_ptr<std::byte[]> allocate_for(int64_t bytes, Workspace& workspace) override {
    if (pool_.get() == nullptr)
      return allocate(bytes);
    const CurrentContext current(*context_);
    const CudaWorkspace& own = cuda_workspace(workspace);
    cuda::CUdeviceptr memory = 0;
    const cuda::CUresult result = driver().cuMemAllocFromPoolAsync(
        &memory, static_cast<size_t>(std::max<int64_t>(bytes, 1)), pool_.get(), own.stream);
    if (result == cuda::CUDA_ERROR_OUT_OF_MEMORY)
      cuda::refuse_memory(*context_, bytes);
    context_->check(result, "allocate memory");
    const auto free = [context = context_, &own](std::byte* address) {
      context->free(
          [&](const cuda::Driver& driver) { driver.cuMemFreeAsync(address_of(address), own.stream); });
    };
    return {reinterpret_cast<std::byte*>(memory), free};
  }

  std::unique_ptr<GrowingMemory> make_growing() override {
    if (cuda::has_virtual_memory(*context_))
      return std::make_unique<cuda::VirtualMemory>(context_);
    return std::make_unique<ReallocatedMemory>(*this);
  }

  std::string describe_foreign(const std::byte* memory) const override {
    const CurrentContext current(*context_);
    unsigned type = 0;
    int number = -1;
    const int attributes[] = {cuda::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                              cuda::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void* values[] = {&type, &number};
    context_->check(driver().cuPointerGetAttributes(2, attributes, values, address_of(memory)),
                    "tell where memory is");
    if (type != cuda::CU_MEMORYTYPE_DEVICE && type != cuda::CU_MEMORYTYPE_UNIFIED)
      return "memory of the host";
    return number == context_->device() ? "" : fmt::format("memory of cuda:{}", number);
  }

  void* default_stream() override { return cuda::CU_STREAM_PER_THREAD; }

  void use_stream(Workspace& workspace, void* stream) override {
    CudaWorkspace& own = cuda_workspace(workspace);
    const auto given = static_cast<cuda::CUstream>(stream);
    own.stream = own.own_stream.get();
    if (given == nullptr && !own.is_awaited)
      return;
    const CurrentContext current(*context_);
    if (given != nullptr) {
      check_stream(given);
      own.stream = given;
    }
    // In the same stream, too: another may have got the name of one that was destroyed.
    if (own.is_awaited)
      context_->check(driver().cuStreamWaitEvent(own.stream, own.left.get(), 0), "wait for an earlier run");
  }

  void leave_stream(Workspace& workspace) override {
    const CurrentContext current(*context_);
    CudaWorkspace& own = cuda_workspace(workspace);
    check_after_kernels(driver().cuEventRecord(own.left.get(), own.stream), "mark the end of a run");
    own.is_awaited = true;
    own.stream = own.own_stream.get();
  }

  bool has_ended(Workspace& workspace) const override {
    const CurrentContext current(*context_);
    const CudaWorkspace& own = cuda_workspace(workspace);
    const cuda::CUresult result = own.is_awaited ? driver().cuEventQuery(own.left.get()) : cuda::CUDA_SUCCESS;
    if (result == cuda::CUDA_ERROR_NOT_READY)
      return false;
    check_after_kernels(result, "finish");
    return true;
  }

  void upload(std::byte* to, const std::byte* from, int64_t bytes, Workspace& workspace) override {
    const CurrentContext current(*context_);
    CudaWorkspace& own = cuda_workspace(workspace);
    own.staging.upload(address_of(to), from, bytes, own.stream);
  }

  void download(std::byte* to, const std::byte* from, int64_t bytes, Workspace& workspace) override {
    const CurrentContext current(*context_);
    const cuda::CUstream stream = cuda_workspace(workspace).stream;
    if (bytes > 0)
      check_after_kernels(
          driver().cuMemcpyDtoHAsync(to, address_of(from), static_cast<size_t>(bytes), stream), "download");
    check_after_kernels(driver().cuStreamSynchronize(stream), "download");
  }

  void copy(std::byte* to, const std::byte* from, int64_t bytes, Workspace& workspace) override {
    const CurrentContext current(*context_);
    if (bytes > 0)
      check_after_kernels(
          driver().cuMemcpyDtoDAsync(address_of(to), address_of(from), static_cast<size_t>(bytes),
                                     cuda_workspace(workspace).stream),
          "copy");
  }

  std::unique_ptr<LaunchGraph> make_graph(const std::vector<RepeatedLaunch>& launches,
                                          Workspace& workspace) override {
    if (options_.checks_kernels)
      return std::make_unique<CheckedLaunches>(launches);
    return std::make_unique<CudaLaunchGraph>(context_, launches, cuda_workspace(workspace));
  }

  void start_clock(Workspace& workspace) override {
    const CurrentContext current(*context_);
    CudaWorkspace& own = cuda_workspace(workspace);
    if (own.started.get() == nullptr) {
      own.started = cuda::make_timing_event(context_);
      own.stopped = cuda::make_timing_event(context_);
    }
    context_->check(driver().cuEventRecord(own.started.get(), own.stream), "start its clock");
  }

  double stop_clock(Workspace& workspace) override {
    const CurrentContext current(*context_);
    const CudaWorkspace& own = cuda_workspace(workspace);
    context_->check(driver().cuEventRecord(own.stopped.get(), own.stream), "stop its clock");
    check_after_kernels(driver().cuEventSynchronize(own.stopped.get()), "finish");
    float milliseconds = 0;
    context_->check(driver().cuEventElapsedTime(&milliseconds, own.started.get(), own.stopped.get()),
                    "read its clock");
    return milliseconds / 1000;
  }

  void wait(Workspace& workspace) override {
    const CurrentContext current(*context_);
    CudaWorkspace& own = cuda_workspace(workspace);
    if (own.is_awaited)
      check_after_kernels(driver().cuEventSynchronize(own.left.get()), "finish");
    own.is_awaited = false;
    check_after_kernels(driver().cuStreamSynchronize(own.stream), "finish");
    own.staging.forget();
  }

  void settle(Workspace& workspace) noexcept override {
    const CudaWorkspace& own = cuda_workspace(workspace);
    context_->free([&](const cuda::Driver& driver) {
      if (own.is_awaited)
        driver.cuEventSynchronize(own.left.get());
      driver.cuStreamSynchronize(own.stream);
    });
  }

  std::optional<size_t> finish(Workspace& workspace) override {
    wait(workspace);
    return cuda_workspace(workspace).failure.take();
  }

 private:
  void check_stream(cuda::CUstream stream) const {
    cuda::CUcontext context = nullptr;
    const cuda::CUresult result = driver().cuStreamGetCtx(stream, &context);
    if (result == cuda::CUDA_ERROR_INVALID_HANDLE || (result == 0 && context != context_->handle()))
      throw user_error("the stream is none of {}", context_->name());
    context_->check(result, "use a stream");
  }

  // What a kernel did wrong is found out by the call that comes after it.
  void check_after_kernels(cuda::CUresult result, std::string_view doing) const {
    try {
      context_->check(result, doing);
    } catch (const cuda::DeviceError& error) {
      throw cuda::DeviceError(
          fmt::format("{}\n  hint: TENON_CUDA_CHECK=1 waits for each kernel, and names it", error.what()));
    }
  }

  SharedContext context_;
  CudaOptions options_;
  cuda::MemoryPool pool_;  // for values of dynamic size
};

}  // namespace

std::shared_ptr<Device> make_cuda_device(int number, const CudaOptions& options) {
  return std::make_shared<CudaDevice>(number, options);
}

}  // namespace tenon::runtime
