#include "tune/adopt.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Adopt, WantsThreePercent) {
  EXPECT_TRUE(is_adopted({1.03, 1.03, 1.03}, {1, 1, 1}));
  EXPECT_FALSE(is_adopted({1.02, 1.02, 1.02}, {1, 1, 1}));
  EXPECT_FALSE(is_adopted({1, 1, 1}, {1, 1, 1}));
}

// One run that took long by chance counts for nothing, nor does one that was fast by chance.
TEST(Adopt, WantsTheFastestRunAndHalfOfThem) {
  EXPECT_TRUE(is_adopted({1.1, 1.2, 1.1}, {1, 9, 1}));
  EXPECT_FALSE(is_adopted({1, 9, 9}, {1, 1, 1}));
  EXPECT_FALSE(is_adopted({1.1, 1.1, 1.1}, {1, 1.2, 1.2}));
}

}  // namespace
}  // namespace tenon
