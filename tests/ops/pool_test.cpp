#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

// Over one spatial dimension, of a tensor [1, 1, n].
Data pool(std::string_view op, const std::vector<double>& x, std::string_view attributes) {
  const Tensor image = f32({1, 1, static_cast<int64_t>(x.size())}, x);
  const bool two = op == "max_pool";
  return run_text(fmt::format("graph(%x: {}) {{ %y{} = {}(%x, {}) return %y{} }}", type_of(image),
                              two ? ", %i" : "", op, attributes, two ? ", %i" : ""),
                  {image});
}

void expect_row(const Datum& actual, const std::vector<double>& expected) {
  expect_tensor(actual, f32({1, 1, static_cast<int64_t>(expected.size())}, expected));
}

TEST(MaxPool, FindsTheGreatestAndWhereItIs) {
  const Data y = pool("max_pool", {3, 1, 3, 5, 4}, "kernel=[3], strides=[1], dilations=[1], pads=[1,1]");
  expect_row(y[0], {3, 3, 5, 5, 5});
  expect_tensor(y[1], i64({1, 1, 5}, {0, 0, 3, 3, 3}));  // of equals, the first
}

TEST(MaxPool, NaNIsGreaterThanAny) {
  const Data y = pool("max_pool", {1, kNaN, kInf, 2}, "kernel=[2], strides=[1], dilations=[1], pads=[0,0]");
  expect_row(y[0], {kNaN, kNaN, kInf});
  expect_tensor(y[1], i64({1, 1, 3}, {1, 1, 2}));
}

TEST(MaxPool, OfPaddingAloneIsTheLeastThereIs) {
  const Data y = pool("max_pool", {-kInf}, "kernel=[1], strides=[1], dilations=[1], pads=[1,0]");
  expect_row(y[0], {-kInf, -kInf});
  expect_tensor(y[1], i64({1, 1, 2}, {-1, 0}));
  const Tensor x = tensor(DType::I8, {1, 1, 1}, {-5});
  expect_tensor(run_text("graph(%x: i8[1,1,1]) { %y, %i = max_pool(%x, kernel=[1], strides=[1], "
                         "dilations=[1], pads=[1,0]) return %y }",
                         {x})[0],
                tensor(DType::I8, {1, 1, 2}, {-128, -5}));
}

TEST(MaxPool, CountsIndicesOverTheWholeTensor) {
  const Tensor x = f32({1, 2, 2, 3}, {1, 2, 3, 4, 5, 6, 6, 5, 4, 3, 2, 1});
  const auto indices = [&](std::string_view more) {
    return run_text(
        fmt::format("graph(%x: f32[1,2,2,3]) {{ %y, %i = max_pool(%x, kernel=[2,2], strides=[1,1], "
                    "dilations=[1,1], pads=[0,0,0,0]{}) return %i }}",
                    more),
        {x})[0];
  };
  expect_tensor(indices(""), i64({1, 2, 1, 2}, {4, 5, 6, 7}));
  expect_tensor(indices(", column_major=true"), i64({1, 2, 1, 2}, {3, 5, 6, 8}));
}

TEST(AveragePool, CountsPaddingWhenAsked) {
  const std::string window = "kernel=[3], strides=[1], dilations=[1], pads=[1,1]";
  expect_row(pool("average_pool", {3, 6, 9}, window)[0], {4.5, 6, 7.5});
  expect_row(pool("average_pool", {3, 6, 9}, window + ", count_padding=true")[0], {3, 6, 5});
  expect_row(pool("average_pool", {3, 6, 9},
                  "kernel=[2], strides=[1], dilations=[2], pads=[1,1], count_padding=true")[0],
             {3, 6, 3});
}

// What stands out beyond the padding is no padding.
TEST(AveragePool, RoundsUpWithoutCountingWhatIsNotThere) {
  const std::string window = "kernel=[3], strides=[2], dilations=[1], pads=[1,1], round_up=true";
  expect_row(pool("average_pool", {3, 6, 9, 12}, window)[0], {4.5, 9, 12});
  expect_row(pool("average_pool", {3, 6, 9, 12}, window + ", count_padding=true")[0], {3, 9, 6});
}

TEST(AveragePool, OfPaddingAloneIsNaN) {
  expect_row(pool("average_pool", {4}, "kernel=[1], strides=[1], dilations=[1], pads=[0,1]")[0], {4, kNaN});
}

TEST(LpPool, IsTheNormOfEachWindow) {
  expect_row(pool("lp_pool", {3, -4, 0}, "kernel=[2], strides=[1], dilations=[1], pads=[0,0]")[0], {5, 4});
  expect_row(pool("lp_pool", {3, -4, 0}, "p=1.0, kernel=[2], strides=[1], dilations=[1], pads=[0,1]")[0],
             {7, 4, 0});
}

TEST(Pool, InfersHowManyWindowsFit) {
  const auto type = [](std::string_view shape, std::string_view attributes) {
    return output_type(
        fmt::format("graph(%x: f32{}) {{ %y = average_pool(%x, {}) return %y }}", shape, attributes));
  };
  const std::string halve = "kernel=[3], strides=[2], dilations=[1], pads=[1,1]";
  EXPECT_EQ(type("[n,c,8]", halve), "f32[n,c,4]");
  EXPECT_EQ(type("[n,c,8]", halve + ", round_up=true"), "f32[n,c,5]");
  EXPECT_EQ(type("[n,c,h]", halve), "f32[n,c,floor((h+1)/2)]");
  // A window that would start in the padding at the end is dropped.
  EXPECT_EQ(type("[1,1,2]", "kernel=[1], strides=[2], dilations=[1], pads=[0,0], round_up=true"),
            "f32[1,1,1]");
  EXPECT_EQ(type("[1,1,3]", "kernel=[2], strides=[3], dilations=[1], pads=[0,1], round_up=true"),
            "f32[1,1,1]");
  EXPECT_EQ(type("[n,c,h]", "kernel=[3], strides=[2], dilations=[1], padding=\"same_lower\""),
            "f32[n,c,floor((h+1)/2)]");
}

TEST(Pool, OfAnEmptyBatchIsEmpty) {
  const Tensor none = f32({0, 3, 4}, {});
  for (std::string_view op : {"average_pool", "lp_pool"})
    expect_tensor(run_text(fmt::format("graph(%x: f32[n,3,4]) {{ %y = {}(%x, kernel=[2], strides=[2], "
                                       "dilations=[1], pads=[0,0]) return %y }}",
                                       op),
                           {none})[0],
                  f32({0, 3, 2}, {}));
}

TEST(Pool, RefusesAKernelLargerThanTheImage) {
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%x: f32[1,1,3]) { %y = average_pool(%x, kernel=[4], strides=[1], dilations=[1], "
            "pads=[0,0]) return %y }");
      },
      "line 1, column 30: average_pool: a window of 4 does not fit into spatial dimension 0 of x: 3\n  x  "
      "%x: f32[1,1,3]");
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%x: f32[1,1,3]) { %y = average_pool(%x, kernel=[2,2], strides=[1], dilations=[1], "
            "pads=[0,0]) return %y }");
      },
      "line 1, column 30: average_pool: kernel is [2,2], but must have 1 elements\n  x  %x: f32[1,1,3]");
}

TEST(Pool, OfNothingIsNothingAtOnce) {
  const std::string text = R"(
    graph(%x: f32[1,0,1099511627776]) {
      %y = average_pool(%x, kernel=[1073741824], strides=[1], dilations=[1], pads=[0,0])
      return %y
    })";
  expect_tensor(run_text(text, {f32({1, 0, int64_t{1} << 40}, {})})[0],
                f32({1, 0, (int64_t{1} << 40) - (int64_t{1} << 30) + 1}, {}));
}

TEST(MaxUnpool, BelievesNoAbsurdNumberOfAxes) {
  expect_error<UserError>(
      [] {
        parse_graph(
            "graph(%x: f32[n], %i: i64[n], %s: i64[1000000000000]) { %y = max_unpool(%x, %i, %s) return %y "
            "}");
      },
      "line 1, column 62: max_unpool: shape: a vector with an element per axis has 1000000000000 of them; a "
      "tensor has at "
      "most 1024 axes\n"
      "  x  %x: f32[n]\n  indices  %i: i64[n]\n  shape  %s: i64[1000000000000]");
}

TEST(MaxUnpool, PutsElementsBack) {
  const std::string text =
      "graph(%x: f32[1,1,2], %i: i64[1,1,2], %s: i64[3]) { %y = max_unpool(%x, %i, %s) return %y }";
  EXPECT_EQ(output_type(text), "f32[d0,d1,d2]");
  expect_tensor(run_text(text, {f32({1, 1, 2}, {5, 6}), i64({1, 1, 2}, {3, 0}), i64({3}, {1, 1, 4})})[0],
                f32({1, 1, 4}, {6, 0, 0, 5}));
  expect_error<UserError>(
      [&] {
        run_text(text, {f32({1, 1, 2}, {5, 6}), i64({1, 1, 2}, {4, -1}), i64({3}, {1, 1, 4})});
      },
      "node %y: max_unpool: index 4 is out of range for 4 elements");
}

}  // namespace
}  // namespace tenon
