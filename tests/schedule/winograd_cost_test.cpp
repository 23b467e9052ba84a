// Which convolutions are computed in Winograd's domain, and in which tiles.
#include "schedule/cpu/winograd_cost.h"

#include <gtest/gtest.h>

#include "target/named_targets.h"

namespace tenon {

using schedule::choose_winograd_blocks;
using schedule::Conv3x3;
using schedule::estimate_winograd;
using schedule::may_use_winograd;

namespace {

TEST(WinogradCost, IsForImagesThatAreLargeBesideTheirWeights) {
  const Target target = target_named("amx");
  const auto tile = [&](const Conv3x3& conv) { return estimate_winograd(conv, target).best_tile(); };
  EXPECT_EQ(tile({.height = 56, .width = 56, .channels = 64, .filters = 64}), 4);
  EXPECT_EQ(tile({.height = 14, .width = 14, .channels = 256, .filters = 256}), 2);
  EXPECT_EQ(tile({.height = 7, .width = 7, .channels = 512, .filters = 512}), std::nullopt);
}

TEST(WinogradCost, IsForChannelsThatFillVectors) {
  const Target target = target_named("amx");
  EXPECT_TRUE(may_use_winograd({.height = 56, .width = 56, .channels = 64, .filters = 64}, target));
  EXPECT_FALSE(may_use_winograd({.height = 56, .width = 56, .channels = 60, .filters = 64}, target));
}

// Blocks are cut for the threads that there are; which tile is best does not depend on them, as others would
// round otherwise.
TEST(WinogradCost, CutsBlocksForThreads) {
  const Target target = target_named("avx512");
  const Conv3x3 conv{.height = 56, .width = 56, .channels = 64, .filters = 64};
  const auto iterations = [&](int threads) {
    const lowering::WinogradBlocks blocks = choose_winograd_blocks(conv, 4, {target, threads});
    return blocks.count * blocks.parts;
  };
  for (const int threads : {2, 4, 8})
    EXPECT_GE(iterations(threads), threads);
}

}  // namespace
}  // namespace tenon
