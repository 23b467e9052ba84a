#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Datum apply(std::string_view op, const Tensor& x, std::string_view attributes = "") {
  return run_text(fmt::format("graph(%x: {}) {{ %y = {}(%x{}) return %y }}", type_of(x), op, attributes),
                  {x})[0];
}

TEST(Unary, KeepsNaNAndTheSignOfZero) {
  const Tensor x = f32({3}, {-0.0, 0, kNaN});
  for (std::string_view op : {"sign", "sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf",
                              "sqrt", "floor", "ceil", "round", "relu"})
    expect_tensor(apply(op, x), x);
  expect_tensor(apply("neg", x), f32({3}, {0, -0.0, kNaN}));
  expect_tensor(apply("abs", x), f32({3}, {0, 0, kNaN}));
  expect_tensor(apply("reciprocal", x), f32({3}, {-kInf, kInf, kNaN}));
}

TEST(Unary, GoesToItsLimits) {
  const Tensor x = f32({2}, {kInf, -kInf});
  expect_tensor(apply("exp", x), f32({2}, {kInf, 0}));
  expect_tensor(apply("log", x), f32({2}, {kInf, kNaN}));
  expect_tensor(apply("log", f32({2}, {0, -1})), f32({2}, {-kInf, kNaN}));
  expect_tensor(apply("sigmoid", x), f32({2}, {1, 0}));
  expect_tensor(apply("tanh", x), f32({2}, {1, -1}));
  expect_tensor(apply("relu", x), f32({2}, {kInf, 0}));
  expect_tensor(apply("exp", f32({0, 2}, {})), f32({0, 2}, {}));
}

TEST(Unary, RoundsHalvesToEven) {
  expect_tensor(apply("round", f32({5}, {0.5, 1.5, 2.5, -0.5, -2.5})), f32({5}, {0, 2, 2, -0.0, -2}));
}

TEST(Unary, TheLeastIntegerWraps) {
  const Tensor x = tensor(DType::I8, {2}, {-128, -5});
  expect_tensor(apply("neg", x), tensor(DType::I8, {2}, {-128, 5}));
  expect_tensor(apply("abs", x), tensor(DType::I8, {2}, {-128, 5}));
  expect_tensor(apply("sign", x), tensor(DType::I8, {2}, {-1, -1}));
  expect_tensor(apply("sign", tensor(DType::U8, {2}, {0, 200})), tensor(DType::U8, {2}, {0, 1}));
  expect_tensor(apply("bit_not", tensor(DType::U4, {2}, {0, 5})), tensor(DType::U4, {2}, {15, 10}));
  expect_tensor(apply("bit_not", tensor(DType::I4, {1}, {5})), tensor(DType::I4, {1}, {-6}));
}

TEST(Unary, TellsInfinitiesApart) {
  const Tensor x = f32({4}, {kInf, -kInf, kNaN, 1});
  const auto bits = [](const std::vector<double>& values) { return tensor(DType::Bool, {4}, values); };
  expect_tensor(apply("is_inf", x), bits({1, 1, 0, 0}));
  expect_tensor(apply("is_inf", x, ", positive=false"), bits({0, 1, 0, 0}));
  expect_tensor(apply("is_inf", x, ", negative=false"), bits({1, 0, 0, 0}));
  expect_tensor(apply("is_nan", x), bits({0, 0, 1, 0}));
}

TEST(Unary, InfersUnrankedShapes) {
  EXPECT_EQ(output_type("graph(%x: f32[*]) { %y = exp(%x) return %y }"), "f32[*]");
  EXPECT_EQ(output_type("graph(%x: f32[*]) { %y = is_nan(%x) return %y }"), "bool[*]");
}

TEST(Unary, FollowsShapeArithmetic) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n], %z: f32[1]) {
      %s = shape(%x)
      %negative = neg(%s)
      %positive = abs(%negative)
      %y = broadcast(%z, %positive)
      return %y
    })"),
            "f32[n]");
}

TEST(Unary, AnUnsignedNegationWraps) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n], %z: f32[1]) {
      %s = shape(%x)
      %u = cast(%s, to=u64)
      %negative = neg(%u)
      %i = cast(%negative, to=i64)
      %positive = neg(%i)
      %y = broadcast(%z, %positive)
      return %y
    })"),
            "f32[d0]");
}

TEST(Unary, RefusesOtherDTypes) {
  expect_error<UserError>([] { parse_graph("graph(%x: i64[2]) { %y = exp(%x) return %y }"); },
                          "line 1, column 26: exp: x is i64[2], but only floats will do");
}

}  // namespace
}  // namespace tenon
