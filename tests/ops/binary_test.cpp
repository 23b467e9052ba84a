#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Data apply(std::string_view op, const Tensor& a, const Tensor& b, std::string_view attributes = "") {
  return run_text(fmt::format("graph(%a: {}, %b: {}) {{ %y = {}(%a, %b{}) return %y }}", type_of(a),
                              type_of(b), op, attributes),
                  {a, b});
}

TEST(Binary, BroadcastsBothWays) {
  expect_tensor(apply("add", f32({2, 1}, {1, 2}), f32({3}, {10, 20, 30}))[0],
                f32({2, 3}, {11, 21, 31, 12, 22, 32}));
  expect_tensor(apply("mul", f32({}, {3}), f32({2}, {1, 2}))[0], f32({2}, {3, 6}));
  expect_tensor(apply("add", f32({0, 3}, {}), f32({1, 3}, {1, 2, 3}))[0], f32({0, 3}, {}));
}

TEST(Binary, InfersSymbolicShapes) {
  const auto type = [](std::string_view a, std::string_view b) {
    return output_type(fmt::format("graph(%a: f32{}, %b: f32{}) {{ %y = add(%a, %b) return %y }}", a, b));
  };
  EXPECT_EQ(type("[n,1]", "[4]"), "f32[n,4]");
  EXPECT_EQ(type("[n]", "[n]"), "f32[n]");
  EXPECT_EQ(type("[n]", "[4]"), "f32[4]");           // n must be 4, or 1
  EXPECT_EQ(type("[n]", "[m]"), "f32[d0]");          // either, if the other is 1: only running tells
  EXPECT_EQ(type("[min(n,512)]", "[n]"), "f32[n]");  // equal, or it does not run
  EXPECT_EQ(type("[n]", "[min(n,2)]"), "f32[n]");
  EXPECT_EQ(type("[min(n,1)]", "[n]"), "f32[n]");
  EXPECT_EQ(type("[min(n,m)]", "[n]"), "f32[d0]");  // m may be 1
  EXPECT_EQ(type("[*]", "[4]"), "f32[*]");
}

TEST(Binary, RefusesShapesThatDoNotBroadcast) {
  expect_error<UserError>(
      [] { parse_graph("graph(%a: f32[2,3], %b: f32[2]) { %y = add(%a, %b) return %y }"); },
      "line 1, column 40: add: the shapes do not broadcast\n  a  %a: f32[2,3]\n  b  %b: f32[2]");
}

TEST(Binary, RefusesResultsLargerThanMemory) {
  const std::vector<double> million(1 << 20);
  expect_error<UserError>(
      [&] {
        run_text("graph(%a: f32[n,1], %b: f32[m]) { %y = add(%a, %b) return %y }",
                 {f32({1 << 20, 1}, million), f32({1 << 20}, million)});
      },
      "node %y: a result of shape [1048576,1048576] is more than this machine's memory can hold");
}

TEST(Binary, RefusesMixedDTypes) {
  expect_error<UserError>([] { parse_graph("graph(%a: f32[2], %b: i64[2]) { %y = add(%a, %b) return %y }"); },
                          "line 1, column 38: add: b is i64[2], but must have the dtype of a, f32");
  expect_error<UserError>([] { parse_graph("graph(%a: bool[2]) { %y = add(%a, %a) return %y }"); },
                          "line 1, column 27: add: a is bool[2], but only numbers will do");
}

TEST(Binary, IntegersWrapAround) {
  expect_tensor(apply("add", tensor(DType::I8, {1}, {127}), tensor(DType::I8, {1}, {1}))[0],
                tensor(DType::I8, {1}, {-128}));
  expect_tensor(apply("mul", tensor(DType::U8, {1}, {16}), tensor(DType::U8, {1}, {17}))[0],
                tensor(DType::U8, {1}, {16}));
  const auto least = static_cast<double>(std::numeric_limits<int64_t>::min());
  expect_tensor(apply("div", i64({1}, {least}), i64({1}, {-1}))[0], i64({1}, {least}));
}

TEST(Binary, DividesIntegersTowardsZero) {
  expect_tensor(apply("div", i64({4}, {7, -7, 7, -7}), i64({4}, {2, 2, -2, -2}))[0],
                i64({4}, {3, -3, -3, 3}));
  expect_error<UserError>([] { apply("div", i64({1}, {1}), i64({1}, {0})); },
                          "node %y: div: an integer is divided by zero");
}

TEST(Binary, RemaindersFollowTheSignAskedFor) {
  const Tensor a = i64({4}, {7, -7, 7, -7}), b = i64({4}, {3, 3, -3, -3});
  expect_tensor(apply("mod", a, b)[0], i64({4}, {1, 2, -2, -1}));
  expect_tensor(apply("mod", a, b, ", sign_of_dividend=true")[0], i64({4}, {1, -1, 1, -1}));
  expect_tensor(apply("mod", f32({2}, {-4, 5.5}), f32({2}, {2, -2}))[0], f32({2}, {0, -0.5}));
}

TEST(Binary, NaNWinsInMaxAndMin) {
  expect_tensor(apply("max", f32({3}, {kNaN, 1, -kInf}), f32({3}, {1, kNaN, 2}))[0],
                f32({3}, {kNaN, kNaN, 2}));
  expect_tensor(apply("min", f32({3}, {kNaN, 1, -kInf}), f32({3}, {1, kNaN, 2}))[0],
                f32({3}, {kNaN, kNaN, -kInf}));
}

TEST(Binary, NaNEqualsNothing) {
  expect_tensor(apply("equal", f32({2}, {kNaN, 1}), f32({2}, {kNaN, 1}))[0],
                tensor(DType::Bool, {2}, {0, 1}));
}

TEST(Binary, ShiftsByTheWidthOrMoreLeaveNothingOrTheSign) {
  const Tensor a = tensor(DType::I8, {3}, {-128, 64, -1}), b = tensor(DType::I8, {3}, {8, 1, -1});
  expect_tensor(apply("shift", a, b, ", direction=\"right\"")[0], tensor(DType::I8, {3}, {-1, 32, -1}));
  expect_tensor(apply("shift", a, b, ", direction=\"left\"")[0], tensor(DType::I8, {3}, {0, -128, 0}));
}

TEST(Binary, ShiftsOnlyLeftOrRight) {
  expect_error<UserError>(
      [] { parse_graph("graph(%a: i8[2]) { %y = shift(%a, %a, direction=\"up\") return %y }"); },
      "line 1, column 25: shift: direction is \"up\", but must be left or right");
}

TEST(Binary, PowersOfIntegersAreExact) {
  expect_tensor(apply("pow", i64({3}, {3, -2, 2}), i64({3}, {4, 3, -1}))[0], i64({3}, {81, -8, 0}));
  expect_tensor(apply("pow", f32({1}, {2}), i64({1}, {3}))[0], f32({1}, {8}));
}

TEST(Binary, FollowsShapeArithmetic) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n,m]) {
      %s = shape(%x)
      %two = constant(value=i64[] {2})
      %double = mul(%s, %two)
      %zeros = constant(value=f32[1,1] {0})
      %y = broadcast(%zeros, %double)
      return %y
    })"),
            "f32[2*n,2*m]");
}

TEST(Binary, AnUnsignedDifferenceMayWrap) {
  const auto type = [](std::string_view shape, std::string_view less) {
    return output_type(fmt::format(R"(
      graph(%x: f32{}, %z: f32[1]) {{
        %s = shape(%x)
        %u = cast(%s, to=u64)
        %less = constant(value=u64[1] {{{}}})
        %difference = sub(%u, %less)
        %i = cast(%difference, to=i64)
        %y = broadcast(%z, %i)
        return %y
      }})",
                                   shape, less));
  };
  EXPECT_EQ(type("[n]", "2"), "f32[d0]");
  EXPECT_EQ(type("[n+2]", "2"), "f32[n]");
}

TEST(Binary, FollowsShapeArithmeticInFloats) {
  // floor(size · scale), as exporters write the size of a scaled image.
  const auto type = [](std::string_view op, std::string_view number) {
    return output_type(fmt::format(R"(
      graph(%x: f32[n,6]) {{
        %s = shape(%x)
        %float = cast(%s, to=f32)
        %number = constant(value=f32[] {{{}}})
        %scaled = {}(%float, %number)
        %whole = floor(%scaled)
        %size = cast(%whole, to=i64)
        %zero = constant(value=f32[] {{0}})
        %y = broadcast(%zero, %size)
        return %y
      }})",
                                   number, op));
  };
  EXPECT_EQ(type("mul", "2"), "f32[2*n,12]");
  EXPECT_EQ(type("div", "3"), "f32[d0,2]");  // of n/3, only a whole number would be known
  EXPECT_EQ(type("mul", "0.5"), "f32[d0,d1]");
}

TEST(Binary, ComparesSizesWhereTheAnswerIsCertain) {
  const auto known = [](std::string_view op, std::string_view number) {
    const auto graph =
        parse_graph(fmt::format("graph(%x: f32[n,3]) {{ %s = shape(%x) %c = constant(value=i64[] {{{}}}) %y "
                                "= {}(%s, %c) return %y }}",
                                number, op));
    const auto dims = graph->outputs()[0].known_dims();
    return dims ? fmt::format("{}", fmt::join(*dims, " ")) : "nothing";
  };
  EXPECT_EQ(known("equal", "-1"), "0 0");
  EXPECT_EQ(known("equal", "3"), "? 1");
  EXPECT_EQ(known("less", "0"), "0 0");
  EXPECT_EQ(known("less", "4"), "? 1");
  EXPECT_EQ(known("less_equal", "-1"), "0 0");
  EXPECT_EQ(known("greater", "-1"), "1 1");
  EXPECT_EQ(known("greater_equal", "0"), "1 1");
  EXPECT_EQ(known("greater_equal", "4"), "? 0");
  EXPECT_EQ(known("div", "2"), "floor(n/2) 1");
  EXPECT_EQ(known("div", "-2"), "? ?");  // truncation is not floor there
}

TEST(Binary, FindsTheGreatestCommonDivisor) {
  const auto gcd = [](const Tensor& a, const Tensor& b) {
    return run_text(
        fmt::format("graph(%a: {}, %b: {}) {{ %y = gcd(%a, %b) return %y }}", type_of(a), type_of(b)),
        {a, b})[0];
  };
  expect_tensor(gcd(i64({5}, {12, -12, 0, 0, 7}), i64({5}, {18, 18, 5, 0, 0})), i64({5}, {6, 6, 5, 0, 7}));
  expect_tensor(gcd(tensor(DType::I8, {2}, {-128, -128}), tensor(DType::I8, {2}, {0, 96})),
                tensor(DType::I8, {2}, {-128, 32}));  // 128 wraps
}

}  // namespace
}  // namespace tenon
