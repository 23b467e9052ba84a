// How contractions are computed, as text, for targets by name: the same on every host.
#include "schedule/cpu/select_contraction.h"

#include "base/expect_error.h"
#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "compiler/explain_contraction.h"
#include "passes/pipeline.h"

namespace tenon {

using compiler::CompileContext;
using compiler::FusedKernel;

namespace {

// The plan of the only contraction of a graph.
std::string plan_of(const Graph& graph, const CompileContext& context) {
  std::string text;
  for (const FusedKernel& kernel : fusion_of(graph, context).after)
    if (kernel.contraction && kernel.contraction->plan)
      text += (text.empty() ? "" : "; ") + schedule::describe(*kernel.contraction->plan);
  return text;
}
std::string plan_of(std::string_view text, std::string_view target,
                    NumericsBudget numerics = NumericsBudget::Default) {
  CompileContext context = for_target(target);
  context.numerics = numerics;
  return plan_of(*read(text), context);
}

std::string conv(int64_t channels, int64_t filters, int64_t size, int64_t window, int64_t groups = 1) {
  return fmt::format(R"(graph g(%x: f32[1,{0},{2},{2}], %w1: f32[{1},{4},{3},{3}]) {{
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[{5},{5},{5},{5}], groups={6})
      return %0
    }})",
                     channels, filters, size, window, channels / groups, window / 2, groups);
}
constexpr std::string_view kProduct =
    "graph g(%x: f32[256,256], %w1: f32[256,256]) { %0 = matmul(%x, %w1) return %0 }";
constexpr std::string_view kRow =
    "graph g(%x: f32[1,256], %w1: f32[256,256]) { %0 = matmul(%x, %w1) return %0 }";

TEST(SelectContraction, TilesProductsForRegisters) {
  EXPECT_EQ(plan_of(kProduct, "avx2"), "gemm 6x16, packed B");
  EXPECT_EQ(plan_of(kProduct, "avx512"), "gemm 13x32, packed B");
  EXPECT_EQ(plan_of(kProduct, "amx"), "gemm 13x32, packed B");
  EXPECT_EQ(plan_of(kProduct, "neon"), "gemm 6x16, packed B, packed A");
  EXPECT_EQ(plan_of(kProduct, "neon-i8mm"), "gemm 6x16, packed B, packed A");
}

TEST(SelectContraction, TakesOneRowAsGemv) {
  EXPECT_EQ(plan_of(kRow, "avx2"), "gemv 1x16, packed B");
  EXPECT_EQ(plan_of(kRow, "avx512"), "gemv 1x32, packed B");
  EXPECT_EQ(plan_of(kRow, "neon"), "gemv 1x8, packed B");
}

TEST(SelectContraction, UsesWinogradForLargeImages) {
  EXPECT_EQ(plan_of(conv(64, 64, 56, 3), "avx2"), "winograd 4x4, 1 row x 1 part");
  EXPECT_EQ(plan_of(conv(64, 64, 56, 3), "avx512"), "winograd 4x4, 1 row x 1 part");
  EXPECT_EQ(plan_of(conv(64, 64, 56, 3), "neon"), "winograd 4x4, 1 row x 1 part");
  EXPECT_EQ(plan_of(conv(512, 512, 7, 3), "avx512"), "direct 13x32, packed B");
}

TEST(SelectContraction, DoesNotUseWinogradUnderStrictNumerics) {
  EXPECT_EQ(plan_of(conv(64, 64, 56, 3), "avx512", NumericsBudget::Strict),
            "direct 14x32, packed B, 4 parts");
  EXPECT_EQ(plan_of(conv(64, 64, 56, 3), "neon", NumericsBudget::Strict), "direct 14x8, packed B");
}

TEST(SelectContraction, TakesOtherConvolutionsAsTheyAre) {
  EXPECT_EQ(plan_of(conv(64, 64, 56, 1), "avx512"), "gemm 6x64, packed B, 8 parts");
  EXPECT_EQ(plan_of(conv(64, 64, 56, 1), "neon"), "gemm 6x16, packed B, 2 parts");
  EXPECT_EQ(plan_of(conv(64, 64, 28, 3, 64), "avx512"), "depthwise 7x32, packed B");
  EXPECT_EQ(plan_of(conv(64, 64, 28, 3, 64), "neon"), "depthwise 7x8, packed B");
  EXPECT_EQ(plan_of(conv(64, 64, 28, 3, 4), "avx512"), "direct 14x16, packed B, 2 parts");
  EXPECT_EQ(plan_of(conv(64, 64, 28, 3, 4), "neon"), "direct 4x16, packed B, 2 parts");
}

TEST(SelectContraction, KnowsNothingOfDynamicSizes) {
  EXPECT_EQ(
      plan_of("graph g(%x: f32[n,256], %w1: f32[256,256]) { %0 = matmul(%x, %w1) return %0 }", "avx512"),
      "gemm 8x32, packed B");
  EXPECT_EQ(plan_of(R"(graph g(%x: f32[1,64,h,h], %w1: f32[64,64,3,3]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      return %0
    })",
                    "avx512"),
            "direct 8x32, packed B, 4 parts");
}

TEST(SelectContraction, MultipliesWordsOfBytes) {
  constexpr std::string_view bytes = R"(graph g(%x: u8[64,256], %w1: i8[256,256]) {
      %0 = cast(%x, to=i32)
      %1 = cast(%w1, to=i32)
      %2 = matmul(%0, %1)
      return %2
    })";
  EXPECT_EQ(plan_of(bytes, "avx2"), "gemm 5x16, packed B");
  EXPECT_EQ(plan_of(bytes, "avx512"), "gemm 13x32, packed B");
  EXPECT_EQ(plan_of(bytes, "amx"), "gemm 32x32 in matrix tiles, packed B");
  EXPECT_EQ(plan_of(bytes, "neon-i8mm"), "gemm 8x8 in matrix tiles, packed B");
}

TEST(SelectContraction, MultipliesWordsOfBf16) {
  const auto plan = [](std::string_view target) {
    CompileContext context = for_target(target);
    context.precision = MatmulPrecision::BF16;
    return plan_of(*read(kProduct), context);
  };
  EXPECT_EQ(plan("amx"), "gemm 32x32 in matrix tiles, packed B");
  EXPECT_EQ(plan("neon-i8mm"), "gemm 10x8 in matrix tiles, packed B");
}

TEST(SelectContraction, LeavesTheProductsOfAttentionToItsKernel) {
  EXPECT_EQ(plan_of(R"(graph g(%q: f32[1,8,64,64], %k: f32[1,8,64,64], %v: f32[1,8,64,64]) {
      %0 = matmul(%q, %k, transpose_b=true)
      %1 = softmax(%0, axis=-1)
      %2 = matmul(%1, %v)
      return %2
    })",
                    "avx512"),
            "");
}

TEST(SelectContraction, TakesWhatTuningChose) {
  const std::unique_ptr<Graph> graph = read(kProduct);
  CompileContext context = for_target("amx");
  const lowering::ContractionKey key = fusion_of(*graph, context).after.back().contraction->contraction->key;
  context.tuning = {{key, {.mr = 5}}};
  EXPECT_EQ(plan_of(*graph, context), "gemm 5x32, packed B");
  context.tuning = {{key, {.bf16x3 = true}}};
  EXPECT_EQ(plan_of(*graph, context), "gemm 32x32 in matrix tiles, bf16x3, packed B");
}

std::string why(std::string_view text, const CompileContext& context, const std::string& node) {
  return explain_contraction(fusion_of(*read(text), context), node);
}

TEST(ExplainContraction, NamesWhatWasWeighed) {
  EXPECT_EQ(why(conv(64, 64, 56, 3), for_target("avx512"), "conv"), R"("conv"
  winograd 4x4, 1 row x 1 part, decided by the cost model
    direct, about 9.032e+05 ns: declined: slower by the estimate
    winograd 2x2, about 5.746e+05 ns: declined: slower by the estimate
    winograd 4x4, about 3.289e+05 ns: chosen
)");
  EXPECT_EQ(why(kProduct, for_target("amx"), "matmul"), R"("matmul"
  gemm 13x32, packed B, decided by the cost model
    bf16x3: declined: only tuning chooses it
    gemm 13x16, about 1.495e+06 instructions: declined: slower by the estimate
    gemm 13x32, about 1.239e+06 instructions: chosen
    gemm 6x64, about 1.695e+06 instructions: declined: slower by the estimate
)");
  CompileContext strict = for_target("avx512");
  strict.numerics = NumericsBudget::Strict;
  EXPECT_EQ(why(conv(64, 64, 56, 3), strict, "conv"), R"("conv"
  direct 14x32, packed B, 4 parts, decided by numerics
    winograd: declined: it rounds differently: numerics are strict
    direct 14x16, about 1.752e+05 instructions: declined: slower by the estimate
    direct 14x32, about 1.752e+05 instructions: chosen
    direct 6x64, about 2.206e+05 instructions: declined: slower by the estimate
)");
}

TEST(ExplainContraction, KnowsItsNodes) {
  expect_error<UserError>([] { why(kProduct, for_target("amx"), "matmull"); },
                          "no kernel computes a node \"matmull\"\n  hint: did you mean matmul?");
}

}  // namespace
}  // namespace tenon
