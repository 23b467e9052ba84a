#include "runtime/plan_memory.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(PlanMemory, SharesMemoryOfWhatIsNeverAliveTogether) {
  const MemoryPlan plan = plan_memory({{640, 0, 1}, {640, 1, 2}, {640, 2, 3}});
  EXPECT_EQ(plan.bytes, 1280);
  EXPECT_EQ(plan.lower_bound, 1280);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
}

TEST(PlanMemory, RoundsUpToCacheLines) {
  const MemoryPlan plan = plan_memory({{1, 0, 5}, {65, 0, 5}, {0, 0, 5}});
  EXPECT_EQ(plan.bytes, 64 + 128);
  for (int64_t offset : plan.offsets)
    EXPECT_EQ(offset % 64, 0);
}

// In the order given, the last would need a place of its own.
TEST(PlanMemory, TriesOtherOrders) {
  const MemoryPlan plan = plan_memory({{64, 4, 4}, {64, 1, 1}, {64, 1, 3}, {64, 2, 4}});
  EXPECT_EQ(plan.lower_bound, 128);
  EXPECT_EQ(plan.bytes, 128);
}

// No two that are alive together overlap, and the plan comes close to the bound.
TEST(PlanMemory, KeepsApartWhatIsAliveTogether) {
  uint64_t state = 7;
  const auto random = [&](uint64_t limit) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<int64_t>((state >> 33) % limit);
  };
  std::vector<Lifetime> buffers;
  for (int64_t i = 0; i < 300; ++i) {
    const int64_t first = random(200);
    buffers.push_back({random(5000), first, first + random(8)});
  }
  const MemoryPlan plan = plan_memory(buffers);
  for (size_t i = 0; i < buffers.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const bool together = buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      const bool apart = plan.offsets[i] + buffers[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + buffers[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  EXPECT_LE(static_cast<double>(plan.bytes), 1.02 * static_cast<double>(plan.lower_bound));
}

}  // namespace
}  // namespace tenon
