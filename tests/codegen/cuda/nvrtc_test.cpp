#include "codegen/cuda/nvrtc.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "base/temporary_folder.h"
#include "codegen/cuda/emit.h"

namespace tenon::codegen {
namespace {

class Nvrtc : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      describe_nvrtc();
    } catch (const UserError& error) {
      GTEST_SKIP() << error.what();
    }
  }

  static CudaText one_region(const std::string& text) { return {.text = text, .shapes = {{.threads = 32}}}; }

  const Gpu gpu_ = gpu_named("sm_90");
  const CudaText text_ =
      one_region("extern \"C\" __global__ void phase_0(float* x) { x[threadIdx.x] += 1; }\n");
};

TEST_F(Nvrtc, CompilesForAGpuThatIsNotHere) {
  for (const std::string_view name : gpu_names()) {
    const runtime::KernelCode code = compile_cuda(text_, gpu_named(name));
    EXPECT_TRUE(
        code.bytes.starts_with("\x7f"
                               "ELF"));
    EXPECT_NE(code.bytes.find("phase_0"), std::string::npos);
    EXPECT_EQ(code.regions, 1);
    ASSERT_EQ(code.shapes.size(), 1);
    EXPECT_EQ(code.shapes[0].threads, 32);
  }
}

TEST_F(Nvrtc, CompilesCopiesThatRunAheadAndClusters) {
  const auto compiled = [](int threads, std::string_view gpu) {
    const loops::Kernel kernel = loops::parse_checked_kernel(
        fmt::format("kernel k(x: f32[n,8192]) -> (y: f32[n,8192]) {{ for r in 0..n block({}) pipelined 2 {{"
                    "  local row: f32[8192] in shared local v: f32[8192] in private local s: f32[] in private"
                    "  copy(8192) row[0] = x[r,0] for i in 0..8192 thread {{ v[i] = row[i] }} s[] = 0"
                    "  for i in 0..8192 thread {{ s[] += v[i] }}"
                    "  for i in 0..8192 thread {{ y[r,i] = v[i] / s[] }} }} }}",
                    threads));
    return compile_cuda(cuda::emit_cuda(kernel), gpu_named(gpu)).bytes;
  };
  EXPECT_NE(compiled(512, "sm_80").find("phase_0"), std::string::npos);
  EXPECT_NE(compiled(8192, "sm_90").find("phase_0"), std::string::npos);
}

TEST_F(Nvrtc, KeepsWhatWasCompiled) {
  const TemporaryFolder folder;
  const ObjectCache cache(folder.path());
  const std::string compiled = compile_cuda(text_, gpu_, cache).bytes;
  EXPECT_EQ(cache.usage().objects, 1);
  EXPECT_EQ(compile_cuda(text_, gpu_, cache).bytes, compiled);
  EXPECT_EQ(cache.usage().objects, 1);
  compile_cuda(text_, gpu_named("sm_80"), cache);
  EXPECT_EQ(cache.usage().objects, 2);
}

TEST_F(Nvrtc, ShowsTheLinesThatAreWrong) {
  expect_error<InternalError>(
      [&] {
        compile_cuda(one_region("extern \"C\" __global__ void phase_0(float* x) {\n  x[0] = y;\n}\n"), gpu_);
      },
      "NVRTC refuses what was generated\n"
      "kernel.cu(2): error: identifier \"y\" is undefined\n"
      "    x[0] = y;\n"
      "           ^\n"
      "\n"
      "1 error detected in the compilation of \"kernel.cu\".\n"
      "    2 |   x[0] = y;\n");
}

TEST_F(Nvrtc, SaysThatItDoesNotKnowAGpu) {
  Gpu gpu = gpu_;
  gpu.architecture = 999;
  try {
    compile_cuda(text_, gpu);
    FAIL() << "it does";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find(" does not compile for sm_999: "), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tenon::codegen
