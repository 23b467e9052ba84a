// Programs on a GPU, with tensors in its memory and in streams of the caller's. Where there is no GPU, or no
// NVRTC, these are skipped.
#include <thread>

#include "api/device_memory.h"
#include "codegen/cuda/nvrtc.h"
#include "runtime/cuda/add_kernel.h"
#include "runtime/cuda/resources.h"

namespace tenon {
namespace {

using Floats = Array<float>;
using Sizes = std::vector<int64_t>;
namespace cuda = runtime::cuda;
constexpr tenon_device kGpu = {TENON_DEVICE_CUDA, 0};

// Of a caller's own, in the primary context.
struct CallersStream {
  CallersStream() : context(cuda::primary_context(0)) {
    const cuda::CurrentContext current(*context);
    stream = cuda::make_stream(context);
  }
  void synchronize() const {
    const cuda::CurrentContext current(*context);
    EXPECT_EQ(cuda::driver().cuStreamSynchronize(stream.get()), cuda::CUDA_SUCCESS);
  }

  std::shared_ptr<const cuda::Context> context;
  cuda::Stream stream;
};

class CudaCalls : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = runtime::why_no_gpu(); !why.empty())
      GTEST_SKIP() << why;
    try {
      codegen::describe_nvrtc();
    } catch (const UserError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  static ProgramHandle compile(const std::string& text) {
    tenon_compile_options options{};
    options.struct_size = sizeof options;
    options.device = kGpu;
    tenon_program* program = nullptr;
    EXPECT_EQ(tenon_compile(load_text(text).get(), &options, &program), TENON_OK) << tenon_error_message();
    return ProgramHandle(program);
  }

  // Twice each element, and the sums of rows: several kernels, which are launched together.
  static ProgramHandle compile_rows(const char* sizes) {
    return compile(fmt::format(R"(graph main(%x: f32[{}]) {{
      %0 = add(%x, %x)
      %1 = reduce_sum(%0, axes=[1])
      return %0 as "y", %1 as "sum"
    }})",
                               sizes));
  }
};

TEST_F(CudaCalls, TakeTensorsOfTheHost) {
  for (const char* sizes : {"2,3", "n,3"}) {
    const ProgramHandle program = compile_rows(sizes);
    Floats x{{1, 2, 3, 4, 5, 6}, {2, 3}}, y{std::vector<float>(6), {2, 3}}, sum{{0, 0}, {2}};
    std::vector<tenon_tensor> outputs = {y.tensor(TENON_F32), sum.tensor(TENON_F32)};
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(run(program, {x.tensor(TENON_F32)}, outputs), TENON_OK) << tenon_error_message();
    EXPECT_EQ(y.elements, (std::vector<float>{2, 4, 6, 8, 10, 12}));
    EXPECT_EQ(sum.elements, (std::vector<float>{12, 30}));
  }
}

TEST_F(CudaCalls, TakeTensorsInEitherMemory) {
  for (const char* sizes : {"2,3", "n,3"}) {
    const ProgramHandle program = compile_rows(sizes);
    for (int i = 0; i < 3; ++i) {
      DeviceFloats x(program, {1, 2, 3, 4, 5, 6}, {2, 3}), sum(program, {0, 0}, {2});
      Floats y{std::vector<float>(6), {2, 3}};
      ASSERT_EQ(run_in(nullptr, program, {x.tensor(kGpu)}, {y.tensor(TENON_F32), sum.tensor(kGpu)}), TENON_OK)
          << tenon_error_message();
      EXPECT_EQ(y.elements, (std::vector<float>{2, 4, 6, 8, 10, 12}));
      EXPECT_EQ(sum.elements(), (std::vector<float>{12, 30}));
    }
  }
}

// Each run reads what the one before it wrote, and none is waited for.
TEST_F(CudaCalls, FollowEachOtherInAStream) {
  for (const char* sizes : {"1000,1024", "n,1024"}) {
    const ProgramHandle program = compile_rows(sizes);
    const CallersStream stream;
    const std::vector<float> ones(1024000, 1);
    DeviceFloats x(program, ones, {1000, 1024}), y(program, ones, {1000, 1024});
    DeviceFloats sum(program, std::vector<float>(1000), {1000});
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(run_in(stream.stream.get(), program, {x.tensor(kGpu)}, {y.tensor(kGpu), sum.tensor(kGpu)}),
                TENON_OK)
          << tenon_error_message();
      std::swap(x, y);
    }
    stream.synchronize();
    EXPECT_EQ(x.elements(), std::vector<float>(1024000, 1024));
    EXPECT_EQ(sum.elements(), std::vector<float>(1000, 1024 * 1024));
    EXPECT_EQ(tenon_synchronize(program.get()), TENON_OK);
  }
}

TEST_F(CudaCalls, RunInTheDefaultStream) {
  const ProgramHandle program = compile_rows("2,3");
  DeviceFloats x(program, {1, 2, 3, 4, 5, 6}, {2, 3}), y(program, std::vector<float>(6), {2, 3});
  DeviceFloats sum(program, {0, 0}, {2});
  void* const legacy = reinterpret_cast<void*>(1);
  ASSERT_EQ(run_in(legacy, program, {x.tensor(kGpu)}, {y.tensor(kGpu), sum.tensor(kGpu)}), TENON_OK)
      << tenon_error_message();
  ASSERT_EQ(tenon_synchronize(program.get()), TENON_OK) << tenon_error_message();
  EXPECT_EQ(sum.elements(), (std::vector<float>{12, 30}));
}

TEST_F(CudaCalls, RunInStreamsOfSeveralThreads) {
  const ProgramHandle program = compile_rows("64,1024");
  const auto work = [&](float number) {
    for (int i = 0; i < 20; ++i) {
      const CallersStream stream;  // which is gone before the next
      DeviceFloats x(program, std::vector<float>(65536, number), {64, 1024});
      DeviceFloats y(program, std::vector<float>(65536), {64, 1024});
      DeviceFloats sum(program, std::vector<float>(64), {64});
      for (int run = 0; run < 5; ++run)
        ASSERT_EQ(run_in(stream.stream.get(), program, {x.tensor(kGpu)}, {y.tensor(kGpu), sum.tensor(kGpu)}),
                  TENON_OK)
            << tenon_error_message();
      stream.synchronize();
      ASSERT_EQ(sum.elements(), std::vector<float>(64, 2048 * number));
    }
  };
  std::thread other(work, 1.F);
  work(2);
  other.join();
}

TEST_F(CudaCalls, SayWhatKernelsRefuse) {
  const ProgramHandle program = compile(R"(graph main(%x: f32[4], %i: i64[2]) {
    %0 = gather(%x, %i)
    return %0 as "y"
  })");
  const std::string message = "node \"gather\": an index is out of range, or an integer is divided by zero";
  const CallersStream stream;
  DeviceFloats x(program, {1, 2, 3, 4}, {4}), y(program, {0, 0}, {2});
  Array<int64_t> far{{0, 9}, {2}}, good{{0, 3}, {2}};
  EXPECT_EQ(run_in(nullptr, program, {x.tensor(kGpu), far.tensor(TENON_I64)}, {y.tensor(kGpu)}),
            TENON_USER_ERROR);
  EXPECT_EQ(tenon_error_message(), message);
  ASSERT_EQ(run_in(stream.stream.get(), program, {x.tensor(kGpu), far.tensor(TENON_I64)}, {y.tensor(kGpu)}),
            TENON_OK);
  ASSERT_EQ(run_in(nullptr, program, {x.tensor(kGpu), good.tensor(TENON_I64)}, {y.tensor(kGpu)}), TENON_OK)
      << tenon_error_message();
  EXPECT_EQ(y.elements(), (std::vector<float>{1, 4}));
  EXPECT_EQ(tenon_synchronize(program.get()), TENON_USER_ERROR);
  EXPECT_EQ(tenon_error_message(), message);
  EXPECT_EQ(tenon_synchronize(program.get()), TENON_OK);
}

TEST_F(CudaCalls, RefuseMemoryOfTheHost) {
  const ProgramHandle program = compile_rows("2,3");
  const std::shared_ptr<const cuda::Context> context = cuda::primary_context(0);
  const cuda::CurrentContext current(*context);
  const cuda::PinnedMemory pinned = cuda::allocate_pinned(context, 64);
  alignas(16) float pageable[6] = {};
  DeviceFloats y(program, std::vector<float>(6), {2, 3}), sum(program, {0, 0}, {2});
  for (void* memory : {pinned.get(), static_cast<void*>(pageable)}) {
    tenon_tensor x = y.tensor(kGpu);
    x.data = memory;
    EXPECT_EQ(run_in(nullptr, program, {x}, {y.tensor(kGpu), sum.tensor(kGpu)}), TENON_USER_ERROR);
    EXPECT_STREQ(tenon_error_message(),
                 "input x is said to be on cuda:0, but its data is memory of the host");
  }
}

TEST_F(CudaCalls, RefuseADeviceThatIsNotThere) {
  tenon_compile_options options{};
  options.struct_size = sizeof options;
  options.device = {TENON_DEVICE_CUDA, 99};
  tenon_program* program = nullptr;
  const ModelHandle model = load_text("graph main(%x: f32[2]) { %0 = neg(%x) return %0 }");
  EXPECT_EQ(tenon_compile(model.get(), &options, &program), TENON_USER_ERROR);
  EXPECT_TRUE(std::string(tenon_error_message()).starts_with("there is no cuda:99")) << tenon_error_message();
}

}  // namespace
}  // namespace tenon
