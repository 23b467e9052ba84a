#include "ops/convolve.h"

#include <cmath>

#include "ir/graph_text.h"
#include "ops/pool.h"
#include "ops/trace.h"

namespace tenon {
namespace {

constexpr std::string_view kPlain = "strides=[1], dilations=[1], pads=[0,0]";

Data apply(std::string_view op, const Tensor& x, const Tensor& w, std::string_view attributes) {
  return run_text(fmt::format("graph(%x: {}, %w: {}) {{ %y = {}(%x, %w, {}) return %y }}", type_of(x),
                              type_of(w), op, attributes),
                  {x, w});
}

std::string type(std::string_view op, std::string_view x, std::string_view w, std::string_view attributes) {
  return output_type(
      fmt::format("graph(%x: f32{}, %w: f32{}) {{ %y = {}(%x, %w, {}) return %y }}", x, w, op, attributes));
}

void refuse(std::string_view op, std::string_view x, std::string_view w, std::string_view attributes,
            const std::string& message) {
  const std::string head = fmt::format("graph(%x: f32{}, %w: f32{}) {{ ", x, w);
  expect_error<UserError>(
      [&] { parse_graph(fmt::format("{}%y = {}(%x, %w, {}) return %y }}", head, op, attributes)); },
      fmt::format("line 1, column {}: {}: {}", head.size() + 6, op, message));
}

// Strides and dilations are 1 where they are left out, and there is no padding.
TEST(Conv, HasDefaultsForItsWindow) {
  const auto printed = [](std::string_view op, std::string_view more) {
    return print(*parse_graph(fmt::format(
        "graph(%x: f32[1,2,5,6], %w: f32[2,2,3,3]) {{ %y = {}(%x, %w{}) return %y }}", op, more)));
  };
  const std::string window = ", strides=[1,1], dilations=[1,1]";
  EXPECT_EQ(printed("conv", ""), printed("conv", window + ", pads=[0,0,0,0]"));
  EXPECT_EQ(printed("conv", ", strides=[2,2]"),
            printed("conv", ", strides=[2,2], dilations=[1,1], pads=[0,0,0,0]"));
  EXPECT_EQ(printed("conv", ", padding=\"same_upper\""),
            printed("conv", window + ", pads=[], padding=\"same_upper\""));
  EXPECT_EQ(printed("conv_transpose", ""),
            printed("conv_transpose", window + ", pads=[0,0,0,0], output_padding=[0,0]"));
}

TEST(Conv, HasNoDefaultsWhereTheRankIsDynamic) {
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[*], %w: f32[*]) { %y = conv(%x, %w) return %y }"); },
      "line 1, column 38: conv: strides, dilations and pads must be given where the rank is dynamic");
}

TEST(Conv, IsMadeByAFunction) {
  const std::unique_ptr<Graph> graph = trace({f32({1, 2, 5, 6}), f32({4, 1, 3, 3})}, [](Value x, Value w) {
    return max_pool(conv(x, w, {.strides = {2, 2}, .pads = {1, 1, 1, 1}}, 2), {2, 2});
  });
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[1,4,2,2]");
}

TEST(Conv, PadsStridesAndDilates) {
  const Tensor x = f32({1, 1, 5}, {1, 2, 3, 4, 5}), w = f32({1, 1, 2}, {1, 10});
  expect_tensor(apply("conv", x, w, kPlain)[0], f32({1, 1, 4}, {21, 32, 43, 54}));
  expect_tensor(apply("conv", x, w, "strides=[2], dilations=[1], pads=[1,0]")[0],
                f32({1, 1, 3}, {10, 32, 54}));
  expect_tensor(apply("conv", x, w, "strides=[1], dilations=[3], pads=[0,1]")[0],
                f32({1, 1, 3}, {41, 52, 3}));
  // Wholly in the padding, at either end.
  expect_tensor(apply("conv", f32({1, 1, 1}, {7}), w, "strides=[2], dilations=[1], pads=[3,3]")[0],
                f32({1, 1, 3}, {0, 70, 0}));
}

TEST(Conv, PadsToTheSameSizeByItself) {
  const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4}), w = f32({1, 1, 2}, {1, 10});
  expect_tensor(apply("conv", x, w, "strides=[1], dilations=[1], padding=\"same_upper\"")[0],
                f32({1, 1, 4}, {21, 32, 43, 4}));
  expect_tensor(apply("conv", x, w, "strides=[1], dilations=[1], padding=\"same_lower\"")[0],
                f32({1, 1, 4}, {10, 21, 32, 43}));
  // A stride beyond the kernel needs no padding.
  expect_tensor(apply("conv", x, w, "strides=[3], dilations=[1], padding=\"same_upper\"")[0],
                f32({1, 1, 2}, {21, 4}));
}

TEST(Conv, KeepsGroupsApart) {
  const Tensor x = f32({1, 4, 1}, {1, 2, 3, 4});
  expect_tensor(apply("conv", x, f32({4, 2, 1}, {1, 10, 1, 1, 1, 10, 0, 1}),
                      "groups=2, strides=[1], dilations=[1], pads=[0,0]")[0],
                f32({1, 4, 1}, {21, 3, 43, 4}));
  expect_tensor(
      apply("conv", x, f32({4, 1, 1}, {1, 2, 3, 4}), "groups=4, strides=[1], dilations=[1], pads=[0,0]")[0],
      f32({1, 4, 1}, {1, 4, 9, 16}));
}

TEST(Conv, RunsOverEverySpatialDimension) {
  const std::string_view attributes = "strides=[1,2,1], dilations=[1,1,1], pads=[0,0,1,0,0,0]";
  const Tensor x = f32({1, 1, 2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  expect_tensor(apply("conv", x, f32({1, 1, 2, 1, 2}, {1, 10, 100, 1000}), attributes)[0],
                f32({1, 1, 1, 2, 2}, {7010, 8721, 11050, 13165}));
}

// Small integers of either sign, so that sums are exact in any order.
Tensor numbers(const Extents& extents, int64_t seed) {
  std::vector<double> values(static_cast<size_t>(element_count(extents)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((static_cast<int64_t>(i) * 37 + seed) % 19 - 9);
  return f32(extents, values);
}

struct Plane {
  int64_t size, kernel, stride, dilation, before, after;
  int64_t count() const { return (size + before + after - dilation * (kernel - 1) - 1) / stride + 1; }
};

// The formula: y[b, f, i, j] = Σ x[b, c, i·stride + k·dilation - before, …] · w[f, c, k, l], 0 outside of x.
std::vector<double> convolve(const Tensor& x, const Tensor& w, const Plane& high, const Plane& wide) {
  const std::vector<double> from = widen<double>(x), weights = widen<double>(w);
  std::vector<double> sums;
  for (int64_t b = 0; b < x.extent(0); ++b)
    for (int64_t f = 0; f < w.extent(0); ++f)
      for (int64_t i = 0; i < high.count(); ++i)
        for (int64_t j = 0; j < wide.count(); ++j) {
          double sum = 0;
          for (int64_t c = 0; c < x.extent(1); ++c)
            for (int64_t k = 0; k < high.kernel; ++k)
              for (int64_t l = 0; l < wide.kernel; ++l) {
                const int64_t row = i * high.stride + k * high.dilation - high.before;
                const int64_t column = j * wide.stride + l * wide.dilation - wide.before;
                if (row < 0 || row >= high.size || column < 0 || column >= wide.size)
                  continue;
                const int64_t at = ((b * x.extent(1) + c) * high.size + row) * wide.size + column;
                const int64_t cell = ((f * x.extent(1) + c) * high.kernel + k) * wide.kernel + l;
                sum += from[static_cast<size_t>(at)] * weights[static_cast<size_t>(cell)];
              }
          sums.push_back(sum);
        }
  return sums;
}

TEST(Conv, IsTheSumOfProductsWhateverTheSizes) {
  for (const auto& [high, wide] : {std::pair(Plane{1, 1, 1, 1, 0, 0}, Plane{1, 1, 1, 1, 0, 0}),
                                   std::pair(Plane{7, 3, 1, 1, 1, 1}, Plane{5, 3, 1, 1, 1, 1}),
                                   std::pair(Plane{13, 3, 2, 1, 0, 1}, Plane{9, 5, 3, 1, 2, 0}),
                                   std::pair(Plane{11, 2, 1, 3, 3, 0}, Plane{17, 4, 2, 3, 1, 4})}) {
    const Tensor x = numbers({2, 3, high.size, wide.size}, 3);
    const Tensor w = numbers({5, 3, high.kernel, wide.kernel}, 5);
    const std::string attributes =
        fmt::format("strides=[{},{}], dilations=[{},{}], pads=[{},{},{},{}]", high.stride, wide.stride,
                    high.dilation, wide.dilation, high.before, wide.before, high.after, wide.after);
    expect_tensor(apply("conv", x, w, attributes)[0],
                  f32({2, 5, high.count(), wide.count()}, convolve(x, w, high, wide)));
  }
}

TEST(Conv, OfIntegersIsExactAndWraps) {
  const auto large = static_cast<double>(int64_t{1} << 53);
  const Tensor x = i64({1, 2, 1}, {large, 1});
  expect_tensor(
      apply("conv", x, i64({1, 2, 1}, {1, 1}), kPlain)[0],
      Tensor::of(std::span<const int64_t>(std::vector<int64_t>{(int64_t{1} << 53) + 1}), {1, 1, 1}));
  expect_tensor(
      apply("conv", tensor(DType::I8, {1, 1, 1}, {100}), tensor(DType::I8, {1, 1, 1}, {2}), kPlain)[0],
      tensor(DType::I8, {1, 1, 1}, {-56}));
}

TEST(Conv, OfNothingIsNothingOrZero) {
  const Tensor w = f32({2, 3, 2}, std::vector<double>(12, 1));
  expect_tensor(apply("conv", f32({0, 3, 4}, {}), w, kPlain)[0], f32({0, 2, 3}, {}));
  expect_tensor(apply("conv", f32({1, 0, 2}, {}), f32({1, 0, 1}, {}), kPlain)[0], f32({1, 1, 2}, {0, 0}));
  expect_tensor(apply("conv", f32({1, 3, 4}, std::vector<double>(12, 1)), f32({0, 3, 1}, {}), kPlain)[0],
                f32({1, 0, 4}, {}));
}

TEST(Conv, InfersSymbolicShapes) {
  const std::string_view halved = "strides=[2,2], dilations=[1,1], pads=[1,1,1,1]";
  EXPECT_EQ(type("conv", "[batch,3,h,w]", "[64,3,3,3]", halved),
            "f32[batch,64,floor((h+1)/2),floor((w+1)/2)]");
  EXPECT_EQ(type("conv", "[n,3,h,w]", "[64,3,3,3]", "strides=[2,1], dilations=[1,2], padding=\"same_upper\""),
            "f32[n,64,floor((h+1)/2),w]");
  EXPECT_EQ(type("conv", "[n,c,224,h]", "[m,c,7,k]", "strides=[2,1], dilations=[1,1], pads=[3,0,3,0]"),
            "f32[n,m,112,h-k+1]");
  EXPECT_EQ(type("conv", "[*]", "[1,1,1]", kPlain), "f32[*]");
}

TEST(Conv, RefusesWhatDoesNotFit) {
  const std::string operands = "\n  x  %x: f32[1,4,3]\n  w  %w: ";
  refuse("conv", "[1,4,3]", "[2,4,5]", kPlain,
         "a window of 5 does not fit into spatial dimension 0 of x: 3" + operands + "f32[2,4,5]");
  refuse("conv", "[1,4,3]", "[2,4,3]", "strides=[1], dilations=[3], pads=[1,2]",
         "a window of 7 does not fit into spatial dimension 0 of x: 3, with padding 6" + operands +
             "f32[2,4,3]");
  refuse("conv", "[1,4,3]", "[2,4,0]", kPlain,
         "the kernel has 0 cells in spatial dimension 0" + operands + "f32[2,4,0]");
  refuse("conv", "[1,4,3]", "[2,3,1]", kPlain, "x has 4 channels, but w is for 3" + operands + "f32[2,3,1]");
  refuse("conv", "[1,4,3]", "[2,4,1]", "groups=2, strides=[1], dilations=[1], pads=[0,0]",
         "x has 4 channels, but w is for 8: 4 in each of 2 groups" + operands + "f32[2,4,1]");
  refuse("conv", "[1,4,3]", "[3,2,1]", "groups=2, strides=[1], dilations=[1], pads=[0,0]",
         "3 filters do not divide into 2 groups" + operands + "f32[3,2,1]");
  refuse("conv", "[1,4,3]", "[2,4,1,1]", kPlain,
         "x and w must have the same rank" + operands + "f32[2,4,1,1]");
  refuse("conv", "[1,4]", "[2,4]", kPlain,
         "x has no spatial dimension; it must be [batch, channels, spatial…]\n  x  %x: f32[1,4]\n  w  %w: "
         "f32[2,4]");
}

TEST(Conv, RefusesAttributesThatMeanNothing) {
  const auto refuse_attributes = [](std::string_view attributes, const std::string& message) {
    refuse("conv", "[1,1,3]", "[1,1,1]", attributes, message);
  };
  const std::string operands = "\n  x  %x: f32[1,1,3]\n  w  %w: f32[1,1,1]";
  refuse_attributes("strides=[0], dilations=[1], pads=[0,0]",
                    "strides is [0], but its elements must be from 1 to 2147483647");
  refuse_attributes("strides=[1], dilations=[1], pads=[0,-1]",
                    "pads is [0,-1], but its elements must be from 0 to 2147483647");
  refuse_attributes("strides=[1,1], dilations=[1], pads=[0,0]",
                    "strides is [1,1], but must have 1 elements" + operands);
  refuse_attributes("strides=[1], dilations=[1], pads=[]", "pads is [], but must have 2 elements" + operands);
  refuse_attributes("strides=[1], dilations=[1], pads=[0,0], padding=\"same_upper\"",
                    "pads is [0,0], but must have 0 elements" + operands);
  refuse_attributes("strides=[1], dilations=[1], padding=\"valid\"",
                    "padding is \"valid\", but must be explicit, same_upper or same_lower");
  refuse_attributes("groups=0, strides=[1], dilations=[1], pads=[0,0]",
                    "groups is 0, but must be from 1 to 2147483647");
}

// What inference could not see, running refuses.
TEST(Conv, RefusesAKernelThatDoesNotFitAtRunTime) {
  expect_error<UserError>(
      [] {
        run_text(
            "graph(%x: f32[1,1,n], %w: f32[1,1,k]) { %y = conv(%x, %w, strides=[1], dilations=[1], "
            "pads=[0,0]) return %y }",
            {f32({1, 1, 1}, {1}), f32({1, 1, 2}, {1, 1})});
      },
      "node %y: conv: a window of 2 does not fit into spatial dimension 0 of x: 1\n  x  %x: f32[1,1,n]\n  w  "
      "%w: f32[1,1,k]");
}

TEST(Conv, RefusesAWindowTooLargeToCount) {
  expect_error<UserError>(
      [] {
        run_text(
            "graph(%x: f32[1,1,n], %w: f32[0,1,k]) { %y = conv(%x, %w, strides=[1], dilations=[2147483647], "
            "pads=[0,0]) return %y }",
            {f32({1, 1, 1}, {1}), Tensor(DType::F32, {0, 1, int64_t{1} << 40})});
      },
      "node %y: conv: windows of [1099511627776] over [1] are too large to be counted");
}

TEST(ConvTranspose, RefusesAResultThatIsTooLarge) {
  expect_error<UserError>(
      [] {
        run_text(
            "graph(%x: f32[0,1,n], %w: f32[1,1,1]) { %y = conv_transpose(%x, %w, strides=[2147483647], "
            "dilations=[1], pads=[0,0], output_padding=[0]) return %y }",
            {Tensor(DType::F32, {0, 1, int64_t{1} << 40}), f32({1, 1, 1}, {1})});
      },
      "node %y: conv_transpose: the result would be too large for x: f32[0,1,1099511627776] and w: "
      "f32[1,1,1]");
}

TEST(ConvTranspose, SpreadsEachElement) {
  const Tensor x = f32({1, 1, 2}, {1, 2}), w = f32({1, 1, 3}, {1, 10, 100});
  const auto transposed = [&](std::string_view attributes) {
    return apply("conv_transpose", x, w, attributes)[0];
  };
  expect_tensor(transposed("strides=[1], dilations=[1], pads=[0,0], output_padding=[0]"),
                f32({1, 1, 4}, {1, 12, 120, 200}));
  expect_tensor(transposed("strides=[2], dilations=[1], pads=[1,0], output_padding=[1]"),
                f32({1, 1, 5}, {10, 102, 20, 200, 0}));
  expect_tensor(transposed("strides=[1], dilations=[2], pads=[0,4], output_padding=[0]"),
                f32({1, 1, 2}, {1, 2}));
}

TEST(ConvTranspose, KeepsGroupsApart) {
  expect_tensor(apply("conv_transpose", f32({1, 2, 1}, {1, 2}), f32({2, 2, 1}, {1, 10, 100, 1000}),
                      "groups=2, strides=[1], dilations=[1], pads=[0,0], output_padding=[0]")[0],
                f32({1, 4, 1}, {1, 10, 200, 2000}));
}

TEST(ConvTranspose, InfersSymbolicShapes) {
  EXPECT_EQ(type("conv_transpose", "[n,8,h,w]", "[8,4,4,3]",
                 "groups=2, strides=[2,1], dilations=[1,2], pads=[1,0,1,0], output_padding=[0,1]"),
            "f32[n,8,2*h,w+5]");
}

TEST(ConvTranspose, RefusesPaddingThatLeavesNothing) {
  refuse("conv_transpose", "[1,1,1]", "[1,1,1]", "strides=[1], dilations=[1], pads=[1,1], output_padding=[0]",
         "the padding leaves nothing of spatial dimension 0\n  x  %x: f32[1,1,1]\n  w  %w: f32[1,1,1]");
  refuse("conv_transpose", "[1,2,1]", "[3,1,1]", "strides=[1], dilations=[1], pads=[0,0], output_padding=[0]",
         "x has 2 channels, but w is for 3\n  x  %x: f32[1,2,1]\n  w  %w: f32[3,1,1]");
}

}  // namespace
}  // namespace tenon
