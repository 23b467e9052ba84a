#include "ir/graph_text.h"

namespace tenon {
namespace {

std::string reshape_text(std::string_view type, const std::vector<int64_t>& shape, bool allow_zero = true) {
  return fmt::format(R"(graph(%x: {}) {{ %s = constant(value=i64[{}] {{{}}})
%y = reshape(%x, %s, allow_zero={}) return %y }})",
                     type, shape.size(), fmt::join(shape, ","), allow_zero);
}

TEST(Reshape, InfersTheOpenDimension) {
  EXPECT_EQ(output_type(reshape_text("f32[n,12,64]", {-1, 768})), "f32[n,768]");
  EXPECT_EQ(output_type(reshape_text("f32[n,m]", {-1})), "f32[m*n]");
  EXPECT_EQ(output_type(reshape_text("f32[n]", {-1, 4})),
            "f32[floor(n/4),4]");  // it divides, or does not run
  EXPECT_EQ(output_type(reshape_text("f32[n,m]", {0, -1, 1}, false)), "f32[n,m,1]");
  EXPECT_EQ(output_type(reshape_text("f32[*]", {-1, 4})), "f32[d0,4]");
  EXPECT_EQ(output_type(reshape_text("f32[*]", {0, 4}, false)), "f32[d0,4]");
}

TEST(Reshape, FollowsAShapeOfKnownLength) {
  EXPECT_EQ(output_type("graph(%x: f32[n,4], %s: i64[3]) { %y = reshape(%x, %s) return %y }"),
            "f32[d0,d1,d2]");
  EXPECT_EQ(output_type("graph(%x: f32[n,4], %s: i64[1]) { %y = reshape(%x, %s) return %y }"), "f32[4*n]");
  EXPECT_EQ(output_type("graph(%x: f32[n,4], %s: i64[k]) { %y = reshape(%x, %s) return %y }"), "f32[*]");
}

TEST(Reshape, BelievesNoAbsurdNumberOfAxes) {
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[n,4], %s: i64[1000000000000]) { %y = reshape(%x, %s) return %y }"); },
      "line 1, column 52: reshape: shape: a vector with an element per axis has 1000000000000 of them; a "
      "tensor has at "
      "most 1024 axes\n"
      "  x  %x: f32[n,4]\n  shape  %s: i64[1000000000000]");
}

TEST(Reshape, KnowsWhatAZeroMeans) {
  const auto run = [](const Tensor& x, const std::vector<int64_t>& shape, bool allow_zero) {
    return run_text(reshape_text("f32[*]", shape, allow_zero), {x})[0];
  };
  expect_tensor(run(f32({2, 3}, {1, 2, 3, 4, 5, 6}), {0, -1, 1}, false), f32({2, 3, 1}, {1, 2, 3, 4, 5, 6}));
  expect_tensor(run(f32({0, 3}, {}), {3, 0}, true), f32({3, 0}, {}));
  expect_tensor(run(f32({0, 3}, {}), {0, -1}, false), f32({0, 3}, {}));  // as for any other number than 0
  expect_tensor(run(f32({0, 3}, {}), {-1, 3}, true), f32({0, 3}, {}));
}

TEST(Reshape, RefusesAtOnceWhatCannotFit) {
  const auto refuse = [](const std::vector<int64_t>& shape, bool allow_zero, std::string_view message) {
    expect_error<UserError>(
        [&] { parse_graph(reshape_text("f32[2,3]", shape, allow_zero)); },
        fmt::format("line 2, column 6: reshape: {}\n  x  %x: f32[2,3]\n  shape  %s: i64[{}]", message,
                    shape.size()));
  };
  refuse({4}, true, "6 elements do not fit into [4]");
  refuse({0, 3}, true, "6 elements do not fit into [0,3]");
  refuse({4, -1}, true, "6 elements do not divide into [4,-1]");
  refuse({-1, -1}, true, "shape has more than one -1");
  refuse({-2, -3}, true, "shape[0] is -2");
  refuse({2, 3, 0}, false, "shape[2] is 0, which copies a dimension that x does not have");
}

TEST(Reshape, RefusesWhenRunningWhatDoesNotFit) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{4}, {4, -1}, {-1, -1}, {-2, -3}, {0, -1}, {int64_t{1} << 40, -1}})
    expect_error<UserError>(
        [&] {
          run_text("graph(%x: f32[6], %s: i64[k]) { %y = reshape(%x, %s) return %y }",
                   {f32({6}, {1, 2, 3, 4, 5, 6}), Tensor::of(shape)});
        },
        fmt::format("node %y: reshape: 6 elements do not fit into [{}]", fmt::join(shape, ",")));
}

TEST(Squeeze, DropsOnlyOnes) {
  EXPECT_EQ(output_type("graph(%x: f32[1,n,1]) { %y = squeeze(%x, axes=[0, -1]) return %y }"), "f32[n]");
  expect_error<UserError>([] { parse_graph("graph(%x: f32[1,3]) { %y = squeeze(%x, axes=[1]) return %y }"); },
                          "line 1, column 28: squeeze: dimension 1 is 3, not 1\n  x  %x: f32[1,3]");
  expect_error<UserError>(
      [] {
        run_text("graph(%x: f32[1,n]) { %y = squeeze(%x, axes=[1]) return %y }", {f32({1, 2}, {1, 2})});
      },
      "node %y: squeeze: dimension 1 of [1,2] is not 1");
}

TEST(Squeeze, KnowsTheRankWhereTheModelComputesTheAxes) {
  const std::string drop = "graph(%x: f32[1,n,1], %a: i64[2]) { %y = squeeze(%x, axes=%a) return %y }";
  EXPECT_EQ(output_type(drop), "f32[d0]");
  expect_tensor(run_text(drop, {f32({1, 2, 1}, {1, 2}), i64({2}, {0, 2})})[0], f32({2}, {1, 2}));
  const std::string add = "graph(%x: f32[n], %a: i64[2]) { %y = unsqueeze(%x, axes=%a) return %y }";
  EXPECT_EQ(output_type(add), "f32[d0,d1,d2]");
  expect_tensor(run_text(add, {f32({2}, {1, 2}), i64({2}, {-1, 0})})[0], f32({1, 2, 1}, {1, 2}));
  EXPECT_EQ(output_type("graph(%x: f32[n], %a: i64[k]) { %y = unsqueeze(%x, axes=%a) return %y }"), "f32[*]");
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[n], %a: i64[2]) { %y = squeeze(%x, axes=%a) return %y }"); },
      "line 1, column 38: squeeze: 2 axes are more than x has\n  x  %x: f32[n]");
}

TEST(Unsqueeze, CountsAxesInTheResult) {
  EXPECT_EQ(output_type("graph(%x: f32[n,m]) { %y = unsqueeze(%x, axes=[-1, 1]) return %y }"),
            "f32[n,1,m,1]");
}

TEST(Transpose, PermutesAnyRank) {
  EXPECT_EQ(output_type("graph(%x: f32[a,b,c]) { %y = transpose(%x, permutation=[2, 0, 1]) return %y }"),
            "f32[c,a,b]");
  expect_tensor(
      run_text("graph(%x: f32[]) { %y = transpose(%x, permutation=[]) return %y }", {f32({}, {1})})[0],
      f32({}, {1}));
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[2,3]) { %y = transpose(%x, permutation=[0, 0]) return %y }"); },
      "line 1, column 28: transpose: [0,0] is not a permutation of the axes of a tensor of rank 2");
}

TEST(Broadcast, WidensBothWays) {
  const auto type = [](std::string_view x, std::string_view shape) {
    return output_type(fmt::format(
        "graph(%x: f32{}) {{ %s = constant(value=i64{}) %y = broadcast(%x, %s) return %y }}", x, shape));
  };
  EXPECT_EQ(type("[n,1]", "[2] {1,4}"), "f32[n,4]");
  EXPECT_EQ(type("[n,1]", "[1] {4}"), "f32[n,4]");
  EXPECT_EQ(type("[*]", "[1] {4}"), "f32[*]");
  EXPECT_EQ(output_type("graph(%x: f32[3,1], %s: i64[3]) { %y = broadcast(%x, %s) return %y }"),
            "f32[d0,3,d1]");
  expect_error<UserError>(
      [&] { type("[3]", "[1] {2}"); },
      "line 1, column 58: broadcast: x does not broadcast to [2]\n  x  %x: f32[3]\n  shape  %s: i64[1]");
  expect_error<UserError>(
      [&] { type("[3]", "[1] {-1}"); },
      "line 1, column 59: broadcast: shape[0] is -1\n  x  %x: f32[3]\n  shape  %s: i64[1]");
}

TEST(Broadcast, RefusesAShapeThatIsNoVector) {
  expect_error<UserError>(
      [] { parse_graph("graph(%x: f32[1], %s: i64[1,2]) { %y = broadcast(%x, %s) return %y }"); },
      "line 1, column 40: broadcast: shape must be a vector\n  x  %x: f32[1]\n  shape  %s: i64[1,2]");
  expect_error<UserError>(
      [] {
        run_text("graph(%x: f32[1], %s: i64[*]) { %y = broadcast(%x, %s) return %y }",
                 {f32({1}, {1}), i64({1, 2}, {1, 2})});
      },
      "node %y: broadcast: shape must be a vector, but is i64[1,2]");
}

TEST(ShapeArithmetic, FollowsTheNumberOfElements) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n,m,4], %scalar: f32[]) {
      %shape = shape(%x)
      %count = reduce_prod(%shape, axes=[0], keep_dims=true)
      %y = broadcast(%scalar, %count)
      return %y
    })"),
            "f32[4*m*n]");
}

TEST(ShapeArithmetic, FollowsOneElementRepeated) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n], %scalar: f32[]) {
      %size = shape(%x)
      %three = constant(value=i64[1] {3})
      %shape = broadcast(%size, %three)
      %y = broadcast(%scalar, %shape)
      return %y
    })"),
            "f32[n,n,n]");
}

}  // namespace
}  // namespace tenon
