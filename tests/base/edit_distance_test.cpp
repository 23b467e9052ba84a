#include "base/edit_distance.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(EditDistance, CountsLettersPutInLeftOutOrChanged) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("", "run"), 3u);
  EXPECT_EQ(edit_distance("run", ""), 3u);
  EXPECT_EQ(edit_distance("optimise", "optimize"), 1u);
  EXPECT_EQ(edit_distance("prnt", "print"), 1u);
  EXPECT_EQ(edit_distance("Relu", "relu"), 0u);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(EditDistance, CountsNeighboursThatAreExchangedOnce) {
  EXPECT_EQ(edit_distance("bnech", "bench"), 1u);
  EXPECT_EQ(edit_distance("--outptu", "--output"), 1u);
  EXPECT_EQ(edit_distance("abcd", "badc"), 2u);
  EXPECT_EQ(edit_distance("abc", "cab"), 2u);
}

}  // namespace
}  // namespace tenon
