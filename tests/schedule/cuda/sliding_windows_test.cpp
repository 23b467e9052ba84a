// Small windows, interpreted, against the nest that nobody scheduled.
#include "schedule/cuda/sliding_windows.h"

#include "schedule/cuda/one_kernel.h"

namespace tenon {
namespace {

// How many results of a thread share the window; 0 where there is none.
int64_t results_of(const OneKernel& one) {
  const std::string text = print(one.scheduled());
  if (text.find("unrolled") == std::string::npos || text.find("in shared") != std::string::npos)
    return 0;
  const std::string loop = "for result0 in 0..";
  const size_t at = text.find(loop);
  return at == std::string::npos ? 1 : std::stoll(text.substr(at + loop.size()));
}

void expect_same(std::string_view text, int64_t results, const Sizes& sizes = {}) {
  for (const int multiprocessors : {1, 132}) {
    const OneKernel one(text, multiprocessors);
    EXPECT_GE(results_of(one), 1) << text;
    expect_same_elements(one, sizes);
  }
  EXPECT_EQ(results_of(OneKernel(text, 1)), results) << text;
}

TEST(SlidingWindows, DepthwiseConvolutions) {
  expect_same(
      "graph g(%x: f32[1,60,8,9], %w: f32[60,1,3,3]) {"
      "%0 = conv(%x, %w, groups=60, pads=[1,1,1,1]) return %0 }",
      4);
  expect_same(
      "graph g(%x: f32[2,40,12,9], %w: f32[40,1,5,3]) {"
      "%0 = conv(%x, %w, groups=40, strides=[2,1], pads=[2,1,2,1]) return %0 }",
      3);
}

TEST(SlidingWindows, GroupsOfFewChannels) {
  expect_same(
      "graph g(%x: f32[1,64,8,8], %w: f32[64,2,3,3]) {"
      "%0 = conv(%x, %w, groups=32, pads=[1,1,1,1]) return %0 }",
      4);
}

// Windows of every other row share nothing with those of the next.
TEST(SlidingWindows, DilatedWindows) {
  expect_same(
      "graph g(%x: f32[1,60,8,9], %w: f32[60,1,3,3]) {"
      "%0 = conv(%x, %w, groups=60, dilations=[2,1], pads=[2,1,2,1]) return %0 }",
      1);
}

TEST(SlidingWindows, Epilogues) {
  expect_same(
      "graph g(%x: f32[1,60,8,9], %w: f32[60,1,3,3], %b: f32[60,1,1]) {"
      "%0 = conv(%x, %w, groups=60, pads=[1,1,1,1]) %1 = add(%0, %b) %2 = relu(%1) return %1, %2 }",
      4);
}

TEST(SlidingWindows, Pooling) {
  expect_same(
      "graph g(%x: f32[2,64,16,9]) { %0 = lp_pool(%x, kernel=[3,3], strides=[2,2], pads=[1,1,1,1], p=1)"
      "return %0 }",
      4);
  expect_same(
      "graph g(%x: f32[2,24,17,9]) { %0, %i = max_pool(%x, kernel=[2,3], strides=[1,2], dilations=[1,1],"
      "pads=[0,1,0,1]) return %0 }",
      2);
}

TEST(SlidingWindows, AlongOneAxis) {
  expect_same(
      "graph g(%x: f32[1,60,80], %w: f32[60,1,5]) {"
      "%0 = conv(%x, %w, groups=60, pads=[2,2]) return %0 }",
      1);
}

TEST(SlidingWindows, DynamicSizes) {
  const std::string_view text =
      "graph g(%x: f32[n,12,h,9], %w: f32[12,1,3,3]) {"
      "%0 = conv(%x, %w, groups=12, pads=[1,1,1,1]) return %0 }";
  expect_same(text, 1, {{"n", 2}, {"h", 5}});
  expect_same(text, 1, {{"n", 0}, {"h", 5}});
}

// As many as leave threads for all multiprocessors.
TEST(SlidingWindows, FewResultsShareLess) {
  const auto depthwise = [](int64_t channels, int64_t size) {
    return results_of(
        OneKernel(fmt::format("graph g(%x: f32[1,{0},{1},{1}], %w: f32[{0},1,3,3]) {{"
                              "%0 = conv(%x, %w, groups={0}, pads=[1,1,1,1]) return %0 }}",
                              channels, size)));
  };
  EXPECT_EQ(depthwise(960, 7), 1);
  EXPECT_EQ(depthwise(64, 112), 4);
  EXPECT_EQ(depthwise(512, 112), 8);
}

TEST(SlidingWindows, NotOfLargeWindows) {
  EXPECT_EQ(results_of(OneKernel("graph g(%x: f32[1,60,18,19], %w: f32[60,1,9,9]) {"
                                 "%0 = conv(%x, %w, groups=60) return %0 }")),
            0);
}

}  // namespace
}  // namespace tenon
