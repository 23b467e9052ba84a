// Which convolutions are computed in Winograd's domain, and in which tiles.
#include "schedule/cpu/winograd_cost.h"

#include <gtest/gtest.h>

#include "target/named_targets.h"

namespace tenon {

using schedule::choose_winograd_tile;
using schedule::Conv3x3;

namespace {

TEST(WinogradCost, IsForImagesThatAreLargeBesideTheirWeights) {
  const Target target = target_named("amx");
  EXPECT_EQ(choose_winograd_tile({.height = 56, .width = 56, .channels = 64, .filters = 64}, target), 4);
  EXPECT_EQ(choose_winograd_tile({.height = 14, .width = 14, .channels = 256, .filters = 256}, target), 2);
  EXPECT_EQ(choose_winograd_tile({.height = 7, .width = 7, .channels = 512, .filters = 512}, target),
            std::nullopt);
  EXPECT_EQ(choose_winograd_tile({.height = 56, .width = 56, .channels = 60, .filters = 64}, target),
            std::nullopt);
}

// Others would round otherwise.
TEST(WinogradCost, IsChosenWhateverTheNumberOfCores) {
  for (const std::string_view name : target_names())
    for (const Conv3x3& sums : {Conv3x3{.height = 14, .width = 14, .channels = 128, .filters = 32},
                                Conv3x3{.height = 14, .width = 14, .channels = 256, .filters = 256},
                                Conv3x3{.height = 7, .width = 7, .channels = 512, .filters = 512},
                                Conv3x3{.height = 56, .width = 56, .channels = 64, .filters = 64}}) {
      Target target = target_named(name);
      std::set<std::optional<int64_t>> chosen;
      for (const int cores : {1, 2, 3, 4, 64}) {
        target.cores = cores;
        chosen.insert(choose_winograd_tile(sums, target));
      }
      EXPECT_EQ(chosen.size(), 1U) << sums.height << " rows, " << name;
    }
}

}  // namespace
}  // namespace tenon
