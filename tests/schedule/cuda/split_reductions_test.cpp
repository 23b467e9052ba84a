// Which reductions are split in parts, as text.
#include "schedule/cuda/split_reductions.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>

#include "ir/parse.h"
#include "lowering/interpret.h"
#include "lowering/lower_graph.h"
#include "ops/registry.h"
#include "target/named_targets.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

Target sm_90() {
  Target target = target_named("avx2");
  target.gpu = gpu_named("sm_90");
  return target;
}

// What each reduction makes: "f32[128] f32[]".
std::string results_in(std::string_view text) {
  register_ops();
  const std::unique_ptr<Graph> graph = parse(text);
  lowering::KernelGraph lowered = lowering::lower_graph(*graph);
  schedule::cuda::split_reductions(lowered, sm_90(), NumericsBudget::Default);
  std::vector<std::string> results;
  for (const lowering::KernelNode& node : lowered.nodes)
    if (const loops::Definition& definition = node.stage->definition; definition.reduces())
      results.push_back(fmt::format("{}[{}]", definition.results.front().dtype,
                                    fmt::join(definition.results.front().sizes, ",")));
  return fmt::format("{}", fmt::join(results, " "));
}

TEST(SplitReductions, OfOneLongRow) {
  EXPECT_EQ(results_in("graph g(%x: f32[1048576]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"),
            "f32[256] f32[]");
}

TEST(SplitReductions, OfFewRows) {
  EXPECT_EQ(results_in("graph g(%x: f32[4,65536]) { %0 = reduce_max(%x, axes=[1]) return %0 }"),
            "f32[16,4] f32[4]");
}

TEST(SplitReductions, OfFewColumns) {
  EXPECT_EQ(results_in("graph g(%x: f32[65536,64]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"),
            "f32[256,64] f32[64]");
}

// A block of columns for each multiprocessor does not load as fast as memory gives.
TEST(SplitReductions, OfColumnsWithOneBlockForEachMultiprocessor) {
  EXPECT_EQ(results_in("graph g(%x: f32[4096,4096]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"),
            "f32[4,4096] f32[4096]");
}

// The most parts of equal size.
TEST(SplitReductions, OfNoPrimeLength) {
  EXPECT_EQ(results_in("graph g(%x: f32[1000003]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"), "f32[]");
}

TEST(SplitReductions, NotWhereThereAreRowsForAllMultiprocessors) {
  EXPECT_EQ(results_in("graph g(%x: f32[600,65536]) { %0 = reduce_sum(%x, axes=[1]) return %0 }"),
            "f32[600]");
}

TEST(SplitReductions, NotWhereALaunchTakesLonger) {
  EXPECT_EQ(results_in("graph g(%x: f32[8192]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"), "f32[]");
}

TEST(SplitReductions, NotOfUnknownLength) {
  EXPECT_EQ(results_in("graph g(%x: f32[n]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"), "f32[]");
}

// Sums of products, by tiles: those of few tiles.
TEST(SplitReductions, OfProductsWithFewTiles) {
  const auto split = [](int64_t m, int64_t n, int64_t k, std::string_view dtype = "f32") {
    return results_in(fmt::format(
        "graph g(%x: {0}[{1},{2}], %y: {0}[{2},{3}]) {{ %0 = matmul(%x, %y) return %0 }}", dtype, m, k, n));
  };
  EXPECT_EQ(split(32, 32, 65536), "f32[8,32,32]");
  EXPECT_EQ(split(128, 768, 3072), "f32[4,128,768]");
  EXPECT_EQ(split(4096, 4096, 4096), "f32[4096,4096]");  // enough tiles
  EXPECT_EQ(split(128, 768, 64), "f32[128,768]");        // short sums
  EXPECT_EQ(split(128, 768, 3079), "f32[128,768]");      // a prime
  EXPECT_EQ(split(4, 4096, 4096), "f32[4,4096]");        // a GEMV
  // Tensor cores are done with so few products before another kernel starts.
  EXPECT_EQ(split(256, 256, 256, "f16"), "f32[256,256]");
  EXPECT_EQ(split(512, 768, 768, "f16"), "f32[512,768]");
  EXPECT_EQ(split(128, 768, 3072, "f16"), "f32[3,128,768]");
}

TEST(SplitReductions, OfConvolutionsOfSmallImages) {
  EXPECT_EQ(results_in("graph g(%x: f32[1,512,7,7], %w: f32[512,512,3,3]) {"
                       "%0 = conv(%x, %w, pads=[1,1,1,1]) return %0 }"),
            "f32[8,512,7,7]");
  EXPECT_EQ(results_in("graph g(%x: f32[32,256,28,28], %w: f32[256,256,3,3]) {"
                       "%0 = conv(%x, %w, pads=[1,1,1,1]) return %0 }"),
            "f32[32,256,28,28]");
}

// The parts add up to what the graph computes.
TEST(SplitReductions, SplitProductsComputeTheSame) {
  register_ops();
  for (const std::string_view text :
       {"graph g(%x: f32[20,1024], %y: f32[1024,24]) { %0 = matmul(%x, %y) %1 = relu(%0) return %1 }",
        "graph g(%x: f32[1,64,5,4], %w: f32[24,64,3,3]) { %0 = conv(%x, %w, pads=[1,1,1,1]) return %0 }"}) {
    const std::unique_ptr<Graph> graph = parse(text);
    lowering::KernelGraph lowered = lowering::lower_graph(*graph);
    std::mt19937 numbers(7);
    std::uniform_real_distribution<double> distribution(-1, 1);
    Data inputs;
    for (const lowering::BufferId input : lowered.inputs) {
      Extents extents;
      for (const Dim& size : lowered.buffers[input].elements.sizes)
        extents.push_back(*size.constant());
      std::vector<double> values(static_cast<size_t>(element_count(extents)));
      std::ranges::generate(values, [&] { return distribution(numbers); });
      inputs.emplace_back(narrow<double>(DType::F32, extents, values));
    }
    RandomGenerator random;
    const auto run = [&] {
      return widen<double>(lowering::interpret(lowered, inputs, random).front().tensor());
    };
    const std::vector<double> before = run();
    EXPECT_EQ(schedule::cuda::split_reductions(lowered, sm_90(), NumericsBudget::Default).size(), 1u) << text;
    const std::vector<double> after = run();
    for (size_t i = 0; i < before.size(); ++i)
      ASSERT_NEAR(after[i], before[i], 1e-4) << text;
  }
}

TEST(SplitReductions, SaysWhyAProductIsSplit) {
  register_ops();
  const std::unique_ptr<Graph> graph =
      parse("graph g(%x: f32[32,65536], %y: f32[65536,32]) { %0 = matmul(%x, %y) return %0 }");
  lowering::KernelGraph lowered = lowering::lower_graph(*graph);
  const std::vector<fusion::Missed> missed =
      schedule::cuda::split_reductions(lowered, sm_90(), NumericsBudget::Default);
  ASSERT_EQ(missed.size(), 1u);
  EXPECT_EQ(lowered.buffers[missed[0].buffer].elements.sizes.front(), Dim(8));
  EXPECT_EQ(missed[0].reader, 1u);
  EXPECT_EQ(missed[0].reason,
            "its sum is split into 8 parts: 8 thread blocks and about 125.3 µs instead of 1 and 993.0 µs");
}

}  // namespace
}  // namespace tenon
