#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Datum align(const std::vector<double>& region, double image, std::string_view attributes) {
  return run_text(
      fmt::format(
          "graph(%x: f32[1,1,2,4], %r: f32[1,4], %i: i64[1]) {{ %y = roi_align(%x, %r, %i, {}) return %y }}",
          attributes),
      {f32({1, 1, 2, 4}, {0, 1, 2, 3, 10, 11, 12, 13}), f32({1, 4}, region), i64({1}, {image})})[0];
}

TEST(RoiAlign, SamplesRegions) {
  expect_tensor(align({0, 0, 4, 2}, 0, "size=[1,2]"), f32({1, 1, 1, 2}, {5.5, 7.5}));
  expect_tensor(align({0, 0, 4, 2}, 0, "size=[1,2], mode=\"max\""), f32({1, 1, 1, 2}, {11, 13}));
  expect_tensor(align({0, 0, 2, 1}, 0, "size=[1,1], samples=1, half_pixel=false"), f32({1, 1, 1, 1}, {6}));
  expect_tensor(align({8, 8, 9, 9}, 0, "size=[1,1]"), f32({1, 1, 1, 1}, {0}));  // far outside
}

TEST(RoiAlign, RefusesRegionsOfNoSizeAndImagesThatAreNotThere) {
  expect_error<UserError>(
      [] {
        align({0, 0, 4, 2}, 1, "size=[1,2]");
      },
      "node %y: roi_align: there is no image 1 in a batch of 1");
  expect_error<UserError>(
      [] {
        align({0, 0, kInf, 2}, 0, "size=[1,2]");
      },
      "node %y: roi_align: a region from -0.5 to inf would take inf samples a bin");
}

TEST(RoiAlign, RefusesAnUnknownModeAtOnce) {
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%x: f32[1,1,2,4], %r: f32[1,4], %i: i64[1]) { %y = roi_align(%x, %r, %i, size=[1,1], "
            "mode=\"sum\") return %y }");
      },
      "line 1, column 58: roi_align: mode is \"sum\", but must be mean or max");
}

TEST(MaxRoiPool, FindsTheGreatestInEachBin) {
  const std::string text =
      "graph(%x: f32[1,1,2,4], %r: f32[r,5]) { %y = max_roi_pool(%x, %r, size=[1,2], scale=0.5) return %y }";
  EXPECT_EQ(output_type(text), "f32[r,1,1,2]");
  const Tensor x = f32({1, 1, 2, 4}, {-1, -2, -3, -4, -5, -6, -7, -8});
  // All of it, and a region that lies outside but for its first column.
  expect_tensor(run_text(text, {x, f32({2, 5}, {0, 0, 0, 6, 2, 0, 6, 0, 12, 2})})[0],
                f32({2, 1, 1, 2}, {-1, -3, -4, 0}));
  expect_error<UserError>(
      [&] {
        run_text(text, {x, f32({1, 5}, {-1, 0, 0, 6, 2})});
      },
      "node %y: max_roi_pool: there is no image -1 in a batch of 1");
}

}  // namespace
}  // namespace tenon
