#include "base/names.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

using Names = std::vector<std::string>;

TEST(Names, KeepTheirEnd) {
  EXPECT_EQ(end_of("/block/Conv", 11), "/block/Conv");
  EXPECT_EQ(end_of("/block/Conv", 10), "…lock/Conv");
  EXPECT_EQ(end_of("größe", 5), "größe");
  EXPECT_EQ(end_of("größe", 4), "…öße");
  EXPECT_EQ(end_of("", 0), "");
}

TEST(Names, AreCountedBehindTheFirst) {
  EXPECT_EQ(first_and_count({"/block/Conv"}, 11), "/block/Conv");
  EXPECT_EQ(first_and_count(Names(3, "/block/Conv_with_bias"), 24), "/block/Conv_with_bias +2");
  EXPECT_EQ(first_and_count(Names(3, "/block/Conv_with_bias"), 23), "…lock/Conv_with_bias +2");
  EXPECT_EQ(first_and_count(Names(3, "/block/Conv_with_bias"), 0), "…v_with_bias +2");
}

TEST(Names, AreListedAsFarAsTheyAreFew) {
  EXPECT_EQ(first_few({}), "");
  EXPECT_EQ(first_few({"a"}), "a");
  EXPECT_EQ(first_few({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(first_few({"a", "b", "c", "d"}), "a, b, c and 1 more");
  EXPECT_EQ(first_few(Names(15, "a")), "a, a, a and 12 more");
}

}  // namespace
}  // namespace tenon
