#include "runtime/cuda/cuda_device.h"

#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "base/expect_error.h"
#include "runtime/cuda/add_kernel.h"
#include "runtime/cuda/driver.h"

namespace tenon::runtime {
namespace {

// A device with one kernel loaded, and a run of it.
struct Adder {
  explicit Adder(const CudaOptions& options = {}) : device(make_cuda_device(0, options)) {
    step.regions = {{.iterations = 1, .scratch = 0}};
    step.sizes = {Dim(1)};
    step.sources = {"sum"};
  }

  DeviceMemory& memory() { return *device->own_memory(); }

  // z[i] = x[i] + y[i] for `count` elements.
  void launch(std::byte* x, std::byte* y, std::byte* z, int64_t count, int64_t shared_bytes_each = 0) {
    const std::vector<int64_t> numbers = {count, count, shared_bytes_each, count};
    const std::vector<std::byte*> buffers = {x, y, z};
    kernel->launch(step, Launch(step, numbers.data()), buffers, 1, *workspace);
  }

  std::shared_ptr<std::byte[]> upload(const std::vector<float>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    std::shared_ptr<std::byte[]> on_device = memory().allocate(bytes);
    memory().upload(on_device.get(), reinterpret_cast<const std::byte*>(values.data()), bytes, *workspace);
    return on_device;
  }

  std::vector<float> download(const std::byte* on_device, size_t count) {
    std::vector<float> values(count);
    memory().download(reinterpret_cast<std::byte*>(values.data()), on_device,
                      static_cast<int64_t>(count * sizeof(float)), *workspace);
    return values;
  }

  std::vector<float> add(const std::vector<float>& x, const std::vector<float>& y) {
    const auto on_device_x = upload(x), on_device_y = upload(y), sums = upload(y);
    launch(on_device_x.get(), on_device_y.get(), sums.get(), static_cast<int64_t>(x.size()));
    return download(sums.get(), x.size());
  }

  std::shared_ptr<Device> device;
  std::unique_ptr<LoadedKernel> kernel = device->load(add_code());
  std::unique_ptr<Workspace> workspace = device->make_workspace();
  KernelStep step = {};
};

class CudaDevice : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_gpu(); !why.empty())
      GTEST_SKIP() << why;
  }
};

TEST(CudaDevices, SayWhyThereAreNone) {
  const std::string why = why_no_gpu();
  if (why.empty())
    GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THROW(make_cuda_device(0), UserError);
  EXPECT_THROW(gpu_numbered(0), UserError);
}

TEST_F(CudaDevice, IsDescribed) {
  for (const Gpu& gpu : list_gpus()) {
    EXPECT_NE(gpu.name, "");
    EXPECT_GE(gpu.architecture, 50);
    EXPECT_GT(gpu.multiprocessors, 0);
    EXPECT_GE(gpu.shared_bytes_per_block, 48 << 10);
    EXPECT_GT(gpu.bytes_per_nanosecond, 10);
  }
}

TEST_F(CudaDevice, MustBeThere) {
  const size_t count = list_gpus().size();
  expect_error<UserError>(
      [] { make_cuda_device(99); },
      fmt::format("there is no cuda:99: this machine has {} CUDA device{}", count, count == 1 ? "" : "s"));
}

TEST_F(CudaDevice, RunsKernels) {
  Adder adder;
  EXPECT_EQ(adder.add({1, 2, 3}, {10, 20, 30}), (std::vector<float>{11, 22, 33}));
  EXPECT_EQ(adder.memory().finish(*adder.workspace), std::nullopt);
}

// More than the two halves of what uploads go through.
TEST_F(CudaDevice, UploadsInParts) {
  Adder adder;
  std::vector<float> x(7'000'001), y(x.size(), 1), sums(x.size());
  std::iota(x.begin(), x.end(), 0);
  std::ranges::transform(x, y, sums.begin(), std::plus());
  EXPECT_EQ(adder.add(x, y), sums);
  EXPECT_EQ(adder.memory().finish(*adder.workspace), std::nullopt);
  EXPECT_EQ(adder.add(x, y), sums);
}

TEST_F(CudaDevice, Copies) {
  Adder adder;
  const auto from = adder.upload({1, 2, 3}), to = adder.upload({0, 0, 0});
  adder.memory().copy(to.get() + 4, from.get(), 8, *adder.workspace);
  EXPECT_EQ(adder.download(to.get(), 3), (std::vector<float>{0, 1, 2}));
}

// Of a run: freed behind what uses it, and used again without waiting.
TEST_F(CudaDevice, AllocatesInTheOrderOfLaunches) {
  Adder adder;
  const auto x = adder.upload({1}), sum = adder.upload({0});
  for (int i = 0; i < 100; ++i) {
    const auto between = adder.memory().allocate_for(1 << 20, *adder.workspace);
    adder.launch(x.get(), sum.get(), between.get(), 1);
    adder.memory().copy(sum.get(), between.get(), 4, *adder.workspace);
  }
  EXPECT_EQ(adder.download(sum.get(), 1), std::vector<float>{100});
}

TEST_F(CudaDevice, KnowsItsMemory) {
  Adder adder;
  const auto x = adder.upload({1});
  const auto pooled = adder.memory().allocate_for(4, *adder.workspace);
  const std::unique_ptr<GrowingMemory> growing = adder.memory().make_growing();
  for (const std::byte* memory : {x.get(), pooled.get(), growing->reserve(4)})
    EXPECT_EQ(adder.memory().describe_foreign(memory), "");
  const std::byte on_stack{};
  EXPECT_EQ(adder.memory().describe_foreign(&on_stack), "memory of the host");
}

// What is launched in a stream of the caller's is not waited for, and what follows comes after it.
TEST_F(CudaDevice, UsesStreamsOfTheCaller) {
  Adder adder;
  const auto x = adder.upload({1}), sum = adder.upload({0});
  adder.memory().wait(*adder.workspace);
  void* const legacy = reinterpret_cast<void*>(1);
  for (int i = 0; i < 50; ++i) {
    adder.memory().use_stream(*adder.workspace, i % 2 == 0 ? legacy : nullptr);
    adder.launch(x.get(), sum.get(), sum.get(), 1);
    adder.memory().leave_stream(*adder.workspace);
  }
  adder.memory().wait(*adder.workspace);
  EXPECT_TRUE(adder.memory().has_ended(*adder.workspace));
  EXPECT_EQ(adder.download(sum.get(), 1), std::vector<float>{50});
}

TEST_F(CudaDevice, LaunchesNothingForNoElements) {
  Adder adder;
  adder.launch(nullptr, nullptr, nullptr, 0);
  EXPECT_EQ(adder.download(nullptr, 0), std::vector<float>());
  EXPECT_EQ(adder.memory().finish(*adder.workspace), std::nullopt);
}

TEST_F(CudaDevice, SaysWhichStepFailed) {
  Adder adder;
  adder.workspace->step = 7;
  EXPECT_EQ(adder.add({1, -2, 3}, {10, 20, 30}), (std::vector<float>{11, 20, 33}));
  adder.memory().wait(*adder.workspace);
  EXPECT_EQ(adder.memory().finish(*adder.workspace), 7);
  EXPECT_EQ(adder.memory().finish(*adder.workspace), std::nullopt);
  adder.workspace->step = 0;
  adder.add({-1}, {1});
  EXPECT_EQ(adder.memory().finish(*adder.workspace), 0);
}

TEST_F(CudaDevice, RunsForSeveralThreads) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      Adder adder;
      const auto value = static_cast<float>(i);
      for (int run = 0; run < 20; ++run)
        EXPECT_EQ(adder.add({value}, {1}), std::vector<float>{value + 1});
    });
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(CudaDevice, SaysHowMuchMemoryIsMissing) {
  Adder adder;
  try {
    adder.memory().allocate(int64_t{1} << 50);
    FAIL() << "there was memory";
  } catch (const UserError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("the model needs 1048576.0 GiB of memory on cuda:0, which has "))
        << message;
  }
  EXPECT_EQ(adder.add({1}, {2}), std::vector<float>{3});
}

TEST_F(CudaDevice, HasLimits) {
  Adder adder;
  expect_error<UserError>([&] { adder.launch(nullptr, nullptr, nullptr, int64_t{1} << 40); },
                          "cuda:0: node \"sum\": 8589934592 thread blocks are wanted, and 2147483647 is the "
                          "most");
  EXPECT_THROW(adder.launch(nullptr, nullptr, nullptr, 1, 1 << 30), UserError);
  const auto x = adder.upload({1}), sum = adder.upload({0});
  adder.launch(x.get(), x.get(), sum.get(), 1, list_gpus()[0].shared_bytes_per_block / 128);
  EXPECT_EQ(adder.download(sum.get(), 1), std::vector<float>{2});
}

// In a process of its own: the error takes with it all that the process has on the device.
TEST_F(CudaDevice, IsLostToAKernelThatReadsWhereNothingIs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail = [] {
    Adder adder;
    adder.launch(nullptr, nullptr, nullptr, 1);
    try {
      adder.memory().finish(*adder.workspace);
      std::exit(1);
    } catch (const cuda::DeviceError& error) {
      std::fprintf(stderr, "%s\n", error.what());
    }
    EXPECT_THROW(adder.memory().allocate(1), cuda::DeviceError);
    expect_error<cuda::DeviceError>([] { Adder(); },
                                    "cuda:0: an earlier error has ended all that this process runs there");
    std::exit(::testing::Test::HasFailure() ? 2 : 0);
  };
  EXPECT_EXIT(fail(), ::testing::ExitedWithCode(0),
              "cuda:0: cannot finish: an illegal memory access was encountered "
              ".CUDA_ERROR_ILLEGAL_ADDRESS.");
}

TEST_F(CudaDevice, NamesTheNodesOfAKernelThatIsChecked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fail = [] {
    Adder adder({.checks_kernels = true});
    try {
      adder.launch(nullptr, nullptr, nullptr, 1);
    } catch (const cuda::DeviceError& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::exit(0);
    }
    std::exit(1);
  };
  EXPECT_EXIT(fail(), ::testing::ExitedWithCode(0), "node \"sum\": cuda:0: cannot run kernel0: ");
}

}  // namespace
}  // namespace tenon::runtime
