// The text of kernels that are scheduled for a GPU by name, run on the host, against the interpreter.
#include <gtest/gtest.h>

#include "codegen/cuda/run_on_host.h"
#include "sanitized.h"
#include "schedule/cuda/attention_kernel.h"
#include "schedule/cuda/one_kernel.h"

namespace tenon::codegen::cuda {
namespace {

using lowering::BlockTile;

struct Case {
  std::string text;
  Sizes sizes = {};
  double tolerance = 1e-5;
  int multiprocessors = 132;
  std::optional<BlockTile> tile = {};  // instead of what is chosen

  loops::Kernel scheduled() const {
    OneKernel one(text, multiprocessors);
    if (tile)
      one.stages.front().plan = std::make_shared<const lowering::ContractionPlan>(
          lowering::ContractionPlan{.algorithm = lowering::Algorithm::Gemm, .block_tile = tile});
    return one.scheduled();
  }
};

const std::vector<Case>& all_cases() {
  static const std::vector<Case>& cases = *new std::vector<Case>{
      {"graph g(%x: f32[1,200], %w: f32[200,128]) { %0 = matmul(%x, %w) return %0 }"},
      {"graph g(%x: f32[5,64], %w: f32[64,72]) { %0 = matmul(%x, %w) %1 = tanh(%0) return %0, %1 }"},
      {"graph g(%x: f32[3,37], %w: f32[37,71]) { %0 = matmul(%x, %w) return %0 }"},
      {"graph g(%x: f32[2,k], %w: f32[k,n]) { %0 = matmul(%x, %w) return %0 }", {{"k", 70}, {"n", 9}}},
      {"graph g(%p: f32[4,1,40], %v: f32[4,40,16]) { %0 = matmul(%p, %v) return %0 }"},
      {"graph g(%x: f16[2,64], %w: f16[64,72]) { %0 = matmul(%x, %w) return %0 }", {}, 0.05},
      {R"(graph g(%x: f32[1,512], %w: f32[64,512]) {
         %0 = transpose(%w, permutation=[1,0])
         %1 = matmul(%x, %0)
         return %1
       })"},
      {R"(graph g(%x: f32[16,96], %w: f32[66,96], %b: f32[66]) {
         %0 = transpose(%w, permutation=[1,0])
         %1 = matmul(%x, %0)
         %2 = add(%1, %b)
         return %2
       })"},
      {R"(graph g(%x: bf16[4,64], %w: bf16[72,64]) {
         %0 = transpose(%w, permutation=[1,0])
         %1 = matmul(%x, %0)
         return %1
       })",
       {},
       0.1},
      {"graph g(%x: f32[1,40,8,9], %w: f32[40,1,3,3]) { %0 = conv(%x, %w, groups=40, pads=[1,1,1,1]) return "
       "%0 }",
       {},
       1e-5,
       1},
      {"graph g(%x: f32[2,24,17,9]) {"
       "%0, %i = max_pool(%x, kernel=[2,3], strides=[1,2], dilations=[1,1], pads=[0,1,0,1]) return %0 }",
       {},
       0,
       1},
  };
  return cases;
}

// Factors that are no boxes of a buffer: rows of several axes, and a last step that is not whole.
const std::vector<Case>& gather_cases() {
  const auto in_stages = [](std::string text, int64_t n, int64_t k, bool by_warpgroups) {
    return Case{.text = std::move(text),
                .tolerance = 0.1,
                .tile = BlockTile{.arithmetic = BlockTile::Arithmetic::TensorCores,
                                  .m = 64,
                                  .n = n,
                                  .k = k,
                                  .part_m = by_warpgroups ? 16 : 32,
                                  .part_n = by_warpgroups ? n : 32,
                                  .stages = 3,
                                  .by_warpgroups = by_warpgroups}};
  };
  static const std::vector<Case>& cases = *new std::vector<Case>{
      in_stages("graph g(%x: f16[3,20,40], %w: f16[40,64]) { %0 = matmul(%x, %w) return %0 }", 64, 32, false),
      in_stages("graph g(%x: bf16[5,7,72], %w: bf16[72,24]) { %0 = matmul(%x, %w) return %0 }", 64, 64,
                false),
      in_stages("graph g(%x: f16[3,20,72], %w: f16[72,64]) { %0 = matmul(%x, %w) return %0 }", 64, 64, true),
      in_stages(R"(graph g(%x: f16[2,20,72], %w: f16[72,72], %b: f16[72]) {
         %0 = transpose(%w, permutation=[1,0])
         %1 = matmul(%x, %0)
         %2 = add(%1, %b)
         return %2
       })",
                128, 64, true),
  };
  return cases;
}

const std::vector<Case>& warpgroup_cases() {
  const auto by_warpgroups = [](std::string text, int64_t m, int64_t n, double tolerance,
                                int64_t stages = 3) {
    const bool is_f32 = text.find(": f32") != std::string::npos;
    return Case{.text = std::move(text),
                .tolerance = tolerance,
                .tile = BlockTile{
                    .arithmetic = is_f32 ? BlockTile::Arithmetic::Bf16x6 : BlockTile::Arithmetic::TensorCores,
                    .m = m,
                    .n = n,
                    .k = 64,
                    .part_m = 16,
                    .part_n = n,
                    .stages = is_f32 ? 1 : stages,
                    .by_warpgroups = true}};
  };
  static const std::vector<Case>& cases = *new std::vector<Case>{
      by_warpgroups("graph g(%x: f16[64,128], %w: f16[128,128]) { %0 = matmul(%x, %w) return %0 }", 64, 128,
                    0.05),
      by_warpgroups("graph g(%x: bf16[128,64], %w: bf16[64,64]) { %0 = matmul(%x, %w) return %0 }", 128, 64,
                    0.3),
      by_warpgroups(R"(graph g(%x: f16[72,64], %w: f16[80,64], %b: f16[80]) {
         %0 = transpose(%w, permutation=[1,0])
         %1 = matmul(%x, %0)
         %2 = add(%1, %b)
         %3 = relu(%2)
         return %3
       })",
                    64, 64, 0.05),
      by_warpgroups(R"(graph g(%x: f16[64,128], %w: f16[64,64]) {
         %0 = transpose(%x, permutation=[1,0])
         %1 = matmul(%0, %w)
         return %1
       })",
                    64, 64, 0.05),
      by_warpgroups("graph g(%x: f16[2,64,64], %w: f16[2,64,64]) { %0 = matmul(%x, %w) return %0 }", 64, 64,
                    0.05),
      by_warpgroups("graph g(%x: f32[70,30], %w: f32[30,66]) { %0 = matmul(%x, %w) return %0 }", 64, 64,
                    1e-4),
      by_warpgroups(R"(graph g(%x: f32[24,64], %w: f32[64,24]) {
         %0 = transpose(%x, permutation=[1,0])
         %1 = transpose(%w, permutation=[1,0])
         %2 = matmul(%0, %1)
         return %2
       })",
                    64, 64, 1e-4),
      // Products of one step run while those of the next begin.
      by_warpgroups("graph g(%x: f16[64,448], %w: f16[448,64]) { %0 = matmul(%x, %w) return %0 }", 64, 64,
                    0.1,
                    /*stages=*/4),
      // Two tiles of each factor, the steps even and odd, and of a number that is not known.
      by_warpgroups("graph g(%x: f32[70,256], %w: f32[256,66]) { %0 = matmul(%x, %w) return %0 }", 64, 64,
                    1e-4),
      by_warpgroups("graph g(%x: f32[128,150], %w: f32[150,64]) { %0 = matmul(%x, %w) return %0 }", 128, 64,
                    1e-4),
      by_warpgroups("graph g(%x: f16[70,150], %w: f16[150,66]) { %0 = matmul(%x, %w) return %0 }", 64, 64,
                    0.1,
                    /*stages=*/1),
      by_warpgroups(R"(graph g(%x: f16[2,24,9,7], %w: f16[40,24,3,3]) {
         %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[1,1,1,1], groups=1)
         return %0
       })",
                    64, 64, 0.1, /*stages=*/1),
  };
  return cases;
}

struct KernelCase {
  loops::Kernel kernel;
  Sizes sizes;
  double tolerance;
};

void expect_as_interpreted(const std::vector<KernelCase>& cases) {
  HostKernels kernels;
  std::vector<size_t> numbers;
  for (const KernelCase& each : cases)
    numbers.push_back(kernels.add(each.kernel));
  kernels.compile();
  for (size_t i = 0; i < numbers.size(); ++i) {
    const auto& [kernel, sizes, tolerance] = cases[i];
    SCOPED_TRACE(print(kernel));
    const std::vector<Tensor> inputs = random_inputs(kernel, sizes),
                              expected = loops::interpret(kernel, inputs, sizes);
    for (const HostKernels::Order order : {HostKernels::Order::Ascending, HostKernels::Order::Descending}) {
      const HostKernels::Result result = kernels.run(numbers[i], inputs, sizes, order);
      ASSERT_FALSE(result.failed || result.is_deadlock) << emit_cuda(kernel).text;
      for (size_t output = 0; output < expected.size(); ++output) {
        const std::vector<double> ours = widen<double>(result.outputs[output]),
                                  theirs = widen<double>(expected[output]);
        ASSERT_EQ(ours.size(), theirs.size());
        for (size_t j = 0; j < ours.size(); ++j)
          ASSERT_NEAR(ours[j], theirs[j], tolerance) << emit_cuda(kernel).text;
      }
    }
  }
}

void expect_as_interpreted(const std::vector<Case>& cases) {
  std::vector<KernelCase> kernels;
  for (const Case& each : cases)
    kernels.push_back({each.scheduled(), each.sizes, each.tolerance});
  expect_as_interpreted(kernels);
}

TEST(ScheduledOnHost, DoesWhatTheInterpreterDoes) {
  if (kIsSanitized)
    GTEST_SKIP() << "fibres and sanitizers do not go together";
  expect_as_interpreted(all_cases());
}

TEST(ScheduledOnHost, CopiesByVectorsDoWhatTheInterpreterDoes) {
  if (kIsSanitized)
    GTEST_SKIP() << "fibres and sanitizers do not go together";
  for (const Case& each : gather_cases())
    EXPECT_NE(emit_cuda(each.scheduled()).text.find("copy_async_where<16>"), std::string::npos) << each.text;
  expect_as_interpreted(gather_cases());
}

// In halves, which two cores share.
class WarpgroupsOnHost : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Half, WarpgroupsOnHost, testing::Values(0, 1));

TEST_P(WarpgroupsOnHost, DoWhatTheInterpreterDoes) {
  if (kIsSanitized)
    GTEST_SKIP() << "fibres and sanitizers do not go together";
  std::vector<Case> cases;
  for (size_t i = GetParam(); i < warpgroup_cases().size(); i += 2)
    cases.push_back(warpgroup_cases()[i]);
  for (const Case& each : cases)
    EXPECT_NE(emit_cuda(each.scheduled()).text.find("wgmma.mma_async"), std::string::npos) << each.text;
  expect_as_interpreted(cases);
}

// Weights go from one product to the next in registers, and what threads of a row tell each other by
// shuffles.
TEST(ScheduledOnHost, AttentionDoesWhatTheInterpreterDoes) {
  if (kIsSanitized)
    GTEST_SKIP() << "fibres and sanitizers do not go together";
  using fusion::AttentionTile;
  const AttentionTile by_warps{
      .on_tensor_cores = true, .warps = 2, .thread_rows = 2, .keys = 32, .stages = 2},
      by_warpgroups{.on_tensor_cores = true, .warps = 4, .keys = 64, .stages = 2, .by_warpgroups = true};
  std::vector<KernelCase> kernels;
  for (const auto& [text, tile] : {std::pair{attention_of("f16", 1, 40, 70, 32), by_warps},
                                   {attention_of("f16", 1, 70, 70, 64), by_warpgroups},
                                   {attention_of("bf16", 1, 64, 40, 128), by_warpgroups}}) {
    kernels.push_back({Attention(text).in_tiles(tile), {}, 2e-2});
    const std::string emitted = emit_cuda(kernels.back().kernel).text;
    EXPECT_NE(emitted.find("= pack_"), std::string::npos) << emitted;
    EXPECT_NE(emitted.find("__shfl_sync(0xffffffff, "), std::string::npos) << emitted;
    EXPECT_NE(emitted.find("copy_async"), std::string::npos) << emitted;
    EXPECT_EQ(emitted.find("wgmma.mma_async") != std::string::npos, tile.by_warpgroups) << emitted;
  }
  expect_as_interpreted(kernels);
}

}  // namespace
}  // namespace tenon::codegen::cuda
