// Results that may lie in the memory of what they are made of.
#include "loops/overwrite.h"

#include <gtest/gtest.h>

namespace tenon::loops {
namespace {

bool can_overwrite(std::string_view body, size_t input = 0, size_t output = 0) {
  const Kernel kernel = parse_checked_kernel(
      "kernel k(a: f32[N], b: f32[N], c: i16[N], d: f32[8]) -> (y: f32[N], z: "
      "f32[N]) {\n" +
      std::string(body) + "\n}\n");
  return loops::can_overwrite(kernel, input, output);
}

constexpr std::string_view kTwo = R"(
  for i in 0..N {
    y[i] = a[i] + b[i]
    z[i] = y[i] * b[i]
  })";

TEST(Overwrite, WhatIsReadWhereItIsWritten) {
  EXPECT_TRUE(can_overwrite(kTwo, 0, 0));
  EXPECT_TRUE(can_overwrite(kTwo, 1, 1)) << "an earlier statement reads it, too";
  EXPECT_TRUE(can_overwrite(kTwo, 0, 1));
  EXPECT_TRUE(
      can_overwrite("for o in 0..2 parallel {\nfor i in 4*o..4*o+4 vector {\ny[i] = a[i]\nz[i] = 1\n}\n}"));
}

TEST(Overwrite, NotWhatIsReadLater) {
  EXPECT_FALSE(can_overwrite(kTwo, 1, 0));
  EXPECT_FALSE(can_overwrite("for i in 0..N {\ny[i] = a[i]\n}\nfor j in 0..N {\nz[j] = a[j]\n}"));
  EXPECT_TRUE(can_overwrite("for i in 0..N {\ny[i] = a[i]\n}\nfor j in 0..N {\nz[j] = y[j]\n}"));
}

TEST(Overwrite, NotWhatIsReadElsewhere) {
  EXPECT_FALSE(can_overwrite("for i in 0..N {\ny[i] = a[N - 1 - i]\nz[i] = 0\n}"));
  EXPECT_FALSE(can_overwrite("for i in 0..N {\ny[i] = a[i] + a[0]\nz[i] = 0\n}"));
  EXPECT_FALSE(can_overwrite("for i in 0..N {\nz[i] = a[0]\ny[i] = a[i]\n}"));
  EXPECT_FALSE(can_overwrite("for j in 0..N {\nz[j] = a[j]\n}\nfor i in 0..N {\ny[i] = a[i]\n}"));
}

TEST(Overwrite, NotWhatIsWrittenTwice) {
  EXPECT_FALSE(can_overwrite("for i in 0..N {\ny[i] = a[i]\n}\nfor i in 0..N {\ny[i] = 1\nz[i] = 2\n}"));
  EXPECT_FALSE(can_overwrite("for i in 0..N {\ny[i] += a[i]\nz[i] = 2\n}"));
  EXPECT_FALSE(can_overwrite("for k in 0..2 {\nfor i in 0..N {\ny[i] = a[i] + 1\nz[i] = 2\n}\n}"));
}

// The last tile of a dimension begins earlier, so that it is full.
TEST(Overwrite, NotWhatTilesThatOverlapWriteTwice) {
  constexpr std::string_view kTiles = R"(
    for o in 0..2 parallel {
      for i in 0..5 {
        if CONDITION {
          z[i+min(5*o,3)] = d[i+min(5*o,3)]
        }
      }
    })";
  const auto with = [&](std::string_view condition) {
    std::string text(kTiles);
    text.replace(text.find("CONDITION"), 9, condition);
    const Kernel kernel =
        parse_checked_kernel("kernel k(d: f32[8]) -> (y: f32[8], z: f32[8]) {\n" + text + "\n}\n");
    return loops::can_overwrite(kernel, 0, 1);
  };
  EXPECT_FALSE(with("i >= 0"));
  EXPECT_TRUE(with("i+min(5*o,3)-5*o >= 0"));
  EXPECT_FALSE(can_overwrite("for o in 0..2 {\nfor i in 0..3 {\ny[i+o] = a[i+o]\nz[i] = 2\n}\n}"));
}

// As the last of several blocks, which begins earlier where it would not be whole.
TEST(Overwrite, NotWhatBlocksThatOverlapWrite) {
  EXPECT_TRUE(can_overwrite(
      "for o in 0..floor((N+3)/4) {\nfor i in 4*o..min(4*o+4,N) {\ny[i] = a[i]\nz[i] = 1\n}\n}"));
  EXPECT_FALSE(can_overwrite("for o in 0..2 parallel {\nfor i in 4*o..4*o+5 {\ny[i] = a[i]\nz[i] = 1\n}\n}"));
  EXPECT_FALSE(
      can_overwrite("for o in 0..floor((N+3)/4) {\nfor i in max(min(4*o,N-4),0)..max(min(4*o,N-4),0)+4 "
                    "{\ny[i] = a[i]\nz[i] = 1\n}\n}"));
  EXPECT_TRUE(can_overwrite("for o in 0..2 {\nfor i in 0..3 {\ny[3*o+i] = a[3*o+i]\nz[i] = 1\n}\n}"));
}

TEST(Overwrite, NotElementsOfAnotherSizeOrNumber) {
  EXPECT_FALSE(can_overwrite("for i in 0..N {\ny[i] = f32(c[i])\nz[i] = 0\n}", 2));
  EXPECT_FALSE(can_overwrite("for i in 0..8 {\ny[i] = d[i]\nz[i] = 0\n}", 3));
}

}  // namespace
}  // namespace tenon::loops
