#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// The row x seen at positions from -1 to 1.
Datum sample(const std::vector<double>& x, const std::vector<double>& positions,
             std::string_view attributes) {
  const Tensor row = f32({1, 1, static_cast<int64_t>(x.size())}, x),
               grid = f32({1, static_cast<int64_t>(positions.size()), 1}, positions);
  return run_text(fmt::format("graph(%x: {}, %g: {}) {{ %y = grid_sample(%x, %g, {}) return %y }}",
                              type_of(row), type_of(grid), attributes),
                  {row, grid})[0];
}

void expect_row(const Datum& actual, const std::vector<double>& expected) {
  expect_near(actual, f32({1, 1, static_cast<int64_t>(expected.size())}, expected), 1e-6);
}

TEST(GridSample, SeesWhatLiesOutsideAsAsked) {
  const std::vector<double> x = {1, 2, 3, 4}, at = {-1, -0.75, 0, 1.25, 2.25};  // -0.5, 0, 1.5, 4, 6
  expect_row(sample(x, at, "outside=\"zeros\""), {0.5, 1, 2.5, 0, 0});
  expect_row(sample(x, at, "outside=\"border\""), {1, 1, 2.5, 4, 4});
  expect_row(sample(x, at, "outside=\"reflection\""), {1, 1, 2.5, 4, 2});
  expect_row(sample(x, {-1, 1, 1 + 2.0 / 3, 7.0 / 3}, "outside=\"reflection\", align_corners=true"),
             {1, 4, 3, 2});
}

TEST(GridSample, RoundsHalvesToEven) {
  expect_row(sample({1, 2, 3, 4}, {-0.5, 0, 0.5}, "mode=\"nearest\""), {1, 3, 3});  // 0.5, 1.5, 2.5
}

TEST(GridSample, MeetsNumbersThatAreNoPosition) {
  for (std::string_view mode : {"nearest", "linear", "cubic"}) {
    expect_row(sample({1, 2}, {kNaN, kInf, -kInf, 1e30}, fmt::format("mode=\"{}\"", mode)), {0, 0, 0, 0});
    expect_row(
        sample({1, 2}, {kNaN, kInf, -kInf, 1e30}, fmt::format("mode=\"{}\", outside=\"border\"", mode)),
        {1, 2, 1, 2});
    sample({1, 2}, {kNaN, kInf, -kInf, 1e30}, fmt::format("mode=\"{}\", outside=\"reflection\"", mode));
  }
  expect_row(sample({7}, {-1, 0.5}, "outside=\"reflection\", align_corners=true"), {7, 7});
}

TEST(GridSample, InfersAndChecksShapes) {
  EXPECT_EQ(output_type("graph(%x: f32[n,3,h,w], %g: f32[n,a,b,2]) { %y = grid_sample(%x, %g) return %y }"),
            "f32[n,3,a,b]");
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[1,3,4,4], %g: f32[1,5,5,3]) { %y = grid_sample(%x, %g) return %y }"); },
      "line 1, column 50: grid_sample: grid must be [batch, 2 sizes, 2]: a position for each element\n"
      "  x  %x: f32[1,3,4,4]\n  grid  %g: f32[1,5,5,3]");
}

TEST(AffineGrid, MovesTheGrid) {
  const std::string text =
      "graph(%t: f32[n,2,3], %s: i64[4]) { %y = affine_grid(%t, %s, align_corners=true) return %y }";
  EXPECT_EQ(output_type(text), "f32[n,d0,d1,2]");
  // Rows and columns change places, and everything moves right by one.
  expect_tensor(run_text(text, {f32({1, 2, 3}, {0, 1, 1, 1, 0, 0}), i64({4}, {1, 1, 2, 3})})[0],
                f32({1, 2, 3, 2}, {0, -1, 0, 0, 0, 1, 2, -1, 2, 0, 2, 1}));
  expect_error<UserError>(
      [&] {
        run_text(text, {f32({1, 2, 3}, {0, 1, 1, 1, 0, 0}), i64({4}, {2, 1, 2, 3})});
      },
      "node %y: affine_grid: size is [2,1,2,3], but theta is [1,2,3]");
}

TEST(AffineGrid, BelievesNoAbsurdOrNegativeSize) {
  expect_error<UserError>(
      [] {
        parse_graph("graph(%t: f32[1,1000000000000,n], %s: i64[k]) { %y = affine_grid(%t, %s) return %y }");
      },
      "line 1, column 54: affine_grid: size must be [batch, channels, spatial…], with a spatial size per row "
      "of theta\n  theta  %t: f32[1,1000000000000,n]\n  size  %s: i64[k]");
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%t: f32[1,2,3]) { %s = constant(value=i64[4] {1,1,-3,2}) %y = affine_grid(%t, %s) "
            "return %y }");
      },
      "line 1, column 69: affine_grid: size[2] is -3\n  theta  %t: f32[1,2,3]\n  size  %s: i64[4]");
}

TEST(Col2im, BelievesNoAbsurdOrNegativeSize) {
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%x: f32[1,n,m], %i: i64[1000000000000], %b: i64[k]) { %y = col2im(%x, %i, %b, "
            "strides=[1], "
            "dilations=[1], pads=[0,0]) return %y }");
      },
      "line 1, column 66: col2im: image_shape: a vector with an element per axis has 1000000000000 of them; "
      "a tensor has at "
      "most 1024 axes\n"
      "  x  %x: f32[1,n,m]\n  image_shape  %i: i64[1000000000000]\n  block_shape  %b: i64[k]");
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%x: f32[1,n,m], %b: i64[1]) { %i = constant(value=i64[1] {-3}) %y = col2im(%x, %i, %b, "
            "strides=[1], dilations=[1], pads=[0,0]) return %y }");
      },
      "line 1, column 75: col2im: image_shape[0] is -3\n"
      "  x  %x: f32[1,n,m]\n  image_shape  %i: i64[1]\n  block_shape  %b: i64[1]");
}

TEST(Col2im, OfNothingIsNothingAtOnce) {
  const std::string text = R"(
    graph(%x: f32[1,0,1]) {
      %huge = constant(value=i64[1] {1099511627776})
      %y = col2im(%x, %huge, %huge, strides=[1], dilations=[1], pads=[0,0])
      return %y
    })";
  expect_tensor(run_text(text, {f32({1, 0, 1}, {})})[0], f32({1, 0, int64_t{1} << 40}, {}));
}

TEST(Col2im, AddsWhereBlocksOverlap) {
  const std::string text =
      "graph(%x: f32[1,2,3]) { %i = constant(value=i64[1] {4}) %b = constant(value=i64[1] {2}) "
      "%y = col2im(%x, %i, %b, strides=[1], dilations=[1], pads=[0,0]) return %y }";
  EXPECT_EQ(output_type(text), "f32[1,1,4]");
  expect_tensor(run_text(text, {f32({1, 2, 3}, {1, 2, 3, 10, 20, 30})})[0], f32({1, 1, 4}, {1, 12, 23, 30}));
}

TEST(Col2im, RefusesBlocksThatDoNotFill) {
  const auto refuse = [](std::string_view shape, const std::string& message) {
    const std::string head = fmt::format(
        "graph(%x: f32{}) {{ %i = constant(value=i64[1] {{4}}) %b = constant(value=i64[1] {{2}}) ", shape);
    expect_error<UserError>(
        [&] {
          parse_graph(head + "%y = col2im(%x, %i, %b, strides=[1], dilations=[1], pads=[0,0]) return %y }");
        },
        fmt::format("line 1, column {}: col2im: {}\n  x  %x: f32{}\n  image_shape  %i: i64[1]\n  block_shape "
                    " %b: i64[1]",
                    head.size() + 6, message, shape));
  };
  refuse("[1,3,3]", "3 channels do not divide into blocks of 2 cells");
  refuse("[1,2,4]", "x has 4 blocks, but 3 fit into the image");
}

TEST(DeformConv, MovesCellsAndScalesWhatTheySee) {
  // One cell; moved by half an element, outside, and by NaN.
  const std::string text =
      "graph(%x: f32[1,1,3], %w: f32[1,1,1], %o: f32[1,1,3], %m: f32[1,1,3]) { %y = deform_conv(%x, %w, %o, "
      "%m, "
      "strides=[1], dilations=[1], pads=[0,0]) return %y }";
  expect_tensor(run_text(text, {f32({1, 1, 3}, {1, 2, 4}), f32({1, 1, 1}, {10}),
                                f32({1, 1, 3}, {0.5, -2, kNaN}), f32({1, 1, 3}, {2, 1, 1})})[0],
                f32({1, 1, 3}, {30, 0, 0}));
}

TEST(DeformConv, RefusesOffsetsOfTheWrongShape) {
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%x: f32[1,1,3], %w: f32[1,1,2], %o: f32[1,1,2]) { %y = deform_conv(%x, %w, %o, "
            "strides=[1], "
            "dilations=[1], pads=[0,0]) return %y }");
      },
      "line 1, column 62: deform_conv: offset has 1 channels, but 2 are wanted\n  x  %x: f32[1,1,3]\n  w  "
      "%w: f32[1,1,2]\n"
      "  offset  %o: f32[1,1,2]");
}

}  // namespace
}  // namespace tenon
