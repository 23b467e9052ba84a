// Which reductions are split in parts, as text.
#include "schedule/cuda/split_reductions.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "ir/parse.h"
#include "lowering/lower_graph.h"
#include "ops/registry.h"

namespace tenon {
namespace {

// What each reduction makes: "f32[128] f32[]".
std::string results_in(std::string_view text) {
  register_ops();
  const std::unique_ptr<Graph> graph = parse(text);
  lowering::KernelGraph lowered = lowering::lower_graph(*graph);
  schedule::cuda::split_reductions(lowered, gpu_named("sm_90"));
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

// Products are tiled.
TEST(SplitReductions, NotOfProducts) {
  EXPECT_EQ(results_in("graph g(%x: f32[16,65536], %y: f32[65536,16]) { %0 = matmul(%x, %y) return %0 }"),
            "f32[16,16]");
}

}  // namespace
}  // namespace tenon
