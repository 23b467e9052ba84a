#include "tune/adopt.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

bool is_adopted_after(const Times& before, const Times& after) {
  return is_adopted(timing_of(before), timing_of(after));
}

TEST(Adopt, WantsThreePercent) {
  EXPECT_TRUE(is_adopted_after({1.04, 1.04, 1.04}, {1, 1, 1}));
  EXPECT_FALSE(is_adopted_after({1.02, 1.02, 1.02}, {1, 1, 1}));
  EXPECT_FALSE(is_adopted_after({1, 1, 1}, {1, 1, 1}));
}

// One run that took long by chance counts for nothing, nor does one that was fast by chance.
TEST(Adopt, WantsTheFastestRunAndHalfOfThem) {
  EXPECT_TRUE(is_adopted_after({1.1, 1.2, 1.1}, {1, 9, 1}));
  EXPECT_FALSE(is_adopted_after({1, 9, 9}, {1, 1, 1}));
  EXPECT_FALSE(is_adopted_after({1.1, 1.1, 1.1}, {1, 1.2, 1.2}));
}

TEST(Adopt, AddsUpStepsThatWereDisturbedInDifferentRuns) {
  const Times first{9, 1, 2}, second{1, 9, 3};
  const Timing sum = timing_of(std::vector{&first, &second});
  EXPECT_EQ(sum.fastest, 2);
  EXPECT_EQ(sum.median, 5);
}

}  // namespace
}  // namespace tenon
