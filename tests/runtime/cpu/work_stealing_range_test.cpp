#include "runtime/cpu/work_stealing_range.h"

#include <gtest/gtest.h>

#include <thread>

namespace tenon {

using runtime::WorkStealingRange;

namespace {

using Iterations = WorkStealingRange::Iterations;

bool operator==(const Iterations& a, const Iterations& b) { return a.begin == b.begin && a.end == b.end; }

TEST(WorkStealingRange, AThreadTakesItsOwnFromTheFront) {
  WorkStealingRange shares;
  shares.share_out(16, 2);
  EXPECT_TRUE(shares.take(1) == (Iterations{8, 12}));
  EXPECT_TRUE(shares.take(0) == (Iterations{0, 4}));
  EXPECT_TRUE(shares.take(0) == (Iterations{4, 6}));
  EXPECT_TRUE(shares.take(0) == (Iterations{6, 7}));
  EXPECT_TRUE(shares.take(0) == (Iterations{7, 8}));
}

TEST(WorkStealingRange, WhoIsThroughTakesFromTheEndOfOthers) {
  WorkStealingRange shares;
  shares.share_out(8, 2);
  shares.take(1);
  for (int i = 0; i < 3; ++i)
    shares.take(0);
  EXPECT_TRUE(shares.take(0) == (Iterations{7, 8}));
  EXPECT_TRUE(shares.take(1) == (Iterations{6, 7}));
  EXPECT_TRUE(shares.take(0).empty());
  EXPECT_TRUE(shares.take(1).empty());
}

TEST(WorkStealingRange, AThreadWithoutIterationsStealsSome) {
  WorkStealingRange shares;
  shares.share_out(1, 2);
  EXPECT_TRUE(shares.take(0) == (Iterations{0, 1}));
  EXPECT_TRUE(shares.take(1).empty());
}

TEST(WorkStealingRange, EveryIterationIsTakenOnceByConcurrentThreads) {
  WorkStealingRange shares;
  for (const int64_t threads : {1, 2, 3, 8, 5})
    for (const int64_t iterations : {0, 1, 7, 1000, 65537}) {
      shares.share_out(iterations, threads);
      std::vector<std::atomic<int>> counts(static_cast<size_t>(iterations));
      std::vector<std::thread> running;
      for (int64_t thread = 0; thread < threads; ++thread)
        running.emplace_back([&, thread] {
          for (Iterations next; !(next = shares.take(thread)).empty();)
            for (int64_t iteration = next.begin; iteration < next.end; ++iteration)
              ++counts[static_cast<size_t>(iteration)];
        });
      for (std::thread& thread : running)
        thread.join();
      EXPECT_EQ(std::vector<int>(counts.begin(), counts.end()),
                std::vector<int>(static_cast<size_t>(iterations), 1))
          << iterations << " iterations, " << threads << " threads";
    }
}

TEST(WorkStealingRange, CountsAsManyAsItSays) {
  WorkStealingRange shares;
  shares.share_out(WorkStealingRange::kMostIterations, 2);
  shares.take(1);
  EXPECT_TRUE(shares.take(0) == (Iterations{0, WorkStealingRange::kMostIterations / 4}));
  EXPECT_ANY_THROW(shares.share_out(WorkStealingRange::kMostIterations + 1, 2));
}

}  // namespace
}  // namespace tenon
