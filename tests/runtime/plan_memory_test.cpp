#include "runtime/plan_memory.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "tensor/tensor.h"

namespace tenon {

using runtime::Lifetime;
using runtime::MemoryPlan;
using runtime::MemoryPlanner;

namespace {

TEST(PlanMemory, SharesMemoryOfWhatIsNeverAliveTogether) {
  const MemoryPlan plan = MemoryPlanner({{0, 1}, {1, 2}, {2, 3}}).plan({640, 640, 640});
  EXPECT_EQ(plan.bytes, 1280);
  EXPECT_EQ(plan.lower_bound, 1280);
  EXPECT_EQ(plan.offsets[0], plan.offsets[2]);
  EXPECT_NE(plan.offsets[0], plan.offsets[1]);
}

TEST(PlanMemory, RoundsUpToCacheLines) {
  const MemoryPlan plan = MemoryPlanner({{0, 5}, {0, 5}, {0, 5}}).plan({1, 65, 0});
  EXPECT_EQ(plan.bytes, 64 + 128);
  for (int64_t offset : plan.offsets)
    EXPECT_EQ(offset % 64, 0);
}

// In the order given, the last would need a place of its own.
TEST(PlanMemory, TriesOtherOrders) {
  const MemoryPlan plan = MemoryPlanner({{4, 4}, {1, 1}, {1, 3}, {2, 4}}).plan({64, 64, 64, 64});
  EXPECT_EQ(plan.lower_bound, 128);
  EXPECT_EQ(plan.bytes, 128);
}

TEST(PlanMemory, RefusesSumsThatCannotBeCounted) {
  constexpr int64_t half = int64_t{1} << 62;
  EXPECT_EQ(MemoryPlanner({{0, 0}, {1, 1}}).plan({half, 64}).bytes, half);
  for (const std::vector<int64_t>& bytes : {std::vector<int64_t>{half, half}, {INT64_MAX, 0}})
    expect_error<UserError>(
        [&] {
          MemoryPlanner({{0, 1}, {1, 2}}).plan(bytes);
        },
        fmt::format("the model needs more than 9223372036854775744 bytes of memory, but this machine has {}",
                    memory_limit()));
}

// No two that are alive together overlap, and the plan comes close to the bound.
TEST(PlanMemory, KeepsApartWhatIsAliveTogether) {
  uint64_t state = 7;
  const auto random = [&](uint64_t limit) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return static_cast<int64_t>((state >> 33) % limit);
  };
  std::vector<Lifetime> lifetimes;
  for (int64_t i = 0; i < 300; ++i) {
    const int64_t first = random(200);
    lifetimes.push_back({first, first + random(8)});
  }
  const MemoryPlanner planner(lifetimes);
  for (uint64_t limit : {1, 100, 5000}) {  // of the sizes, which may be others every time
    std::vector<int64_t> bytes;
    for (size_t i = 0; i < lifetimes.size(); ++i)
      bytes.push_back(random(limit));
    const MemoryPlan plan = planner.plan(bytes);
    for (size_t i = 0; i < bytes.size(); ++i)
      for (size_t j = 0; j < i; ++j) {
        const bool together =
            lifetimes[i].first <= lifetimes[j].last && lifetimes[j].first <= lifetimes[i].last;
        const bool apart =
            plan.offsets[i] + bytes[i] <= plan.offsets[j] || plan.offsets[j] + bytes[j] <= plan.offsets[i];
        EXPECT_TRUE(!together || apart) << i << " and " << j;
      }
    EXPECT_LE(static_cast<double>(plan.bytes), 1.02 * static_cast<double>(plan.lower_bound));
  }
}

}  // namespace
}  // namespace tenon
