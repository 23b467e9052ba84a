#include "runtime/turn_shares.h"

#include <gtest/gtest.h>

#include <thread>

namespace tenon {
namespace {

using Turns = TurnShares::Turns;

bool operator==(const Turns& a, const Turns& b) { return a.begin == b.begin && a.end == b.end; }

TEST(TurnShares, AThreadTakesItsOwnFromTheFront) {
  TurnShares shares;
  shares.share_out(16, 2);
  EXPECT_TRUE(shares.take(1) == (Turns{8, 12}));
  EXPECT_TRUE(shares.take(0) == (Turns{0, 4}));
  EXPECT_TRUE(shares.take(0) == (Turns{4, 6}));
  EXPECT_TRUE(shares.take(0) == (Turns{6, 7}));
  EXPECT_TRUE(shares.take(0) == (Turns{7, 8}));
}

TEST(TurnShares, WhoIsThroughTakesFromTheEndOfOthers) {
  TurnShares shares;
  shares.share_out(8, 2);
  shares.take(1);
  for (int i = 0; i < 3; ++i)
    shares.take(0);
  EXPECT_TRUE(shares.take(0) == (Turns{7, 8}));
  EXPECT_TRUE(shares.take(1) == (Turns{6, 7}));
  EXPECT_TRUE(shares.take(0).empty());
  EXPECT_TRUE(shares.take(1).empty());
}

TEST(TurnShares, AThreadWithoutTurnsOfItsOwnFindsSome) {
  TurnShares shares;
  shares.share_out(1, 2);
  EXPECT_TRUE(shares.take(0) == (Turns{0, 1}));
  EXPECT_TRUE(shares.take(1).empty());
}

TEST(TurnShares, EveryTurnIsTakenOnceByThreadsAtOnce) {
  TurnShares shares;
  for (const int64_t threads : {1, 2, 3, 8, 5})
    for (const int64_t turns : {0, 1, 7, 1000, 65537}) {
      shares.share_out(turns, threads);
      std::vector<std::atomic<int>> counts(static_cast<size_t>(turns));
      std::vector<std::thread> running;
      for (int64_t thread = 0; thread < threads; ++thread)
        running.emplace_back([&, thread] {
          for (Turns next; !(next = shares.take(thread)).empty();)
            for (int64_t turn = next.begin; turn < next.end; ++turn)
              ++counts[static_cast<size_t>(turn)];
        });
      for (std::thread& thread : running)
        thread.join();
      EXPECT_EQ(std::vector<int>(counts.begin(), counts.end()),
                std::vector<int>(static_cast<size_t>(turns), 1))
          << turns << " turns, " << threads << " threads";
    }
}

TEST(TurnShares, CountsAsManyAsItSays) {
  TurnShares shares;
  shares.share_out(TurnShares::kMostTurns, 2);
  shares.take(1);
  EXPECT_TRUE(shares.take(0) == (Turns{0, TurnShares::kMostTurns / 4}));
  EXPECT_ANY_THROW(shares.share_out(TurnShares::kMostTurns + 1, 2));
}

}  // namespace
}  // namespace tenon
