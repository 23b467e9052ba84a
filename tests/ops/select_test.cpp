#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNaN = std::nan("");

Datum cast(const Tensor& x, std::string_view to, std::string_view attributes = "") {
  return run_text(
      fmt::format("graph(%x: {}) {{ %y = cast(%x, to={}{}) return %y }}", type_of(x), to, attributes),
      {x})[0];
}

Tensor strings(std::vector<std::string> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::strings(std::move(values), {count});
}

TEST(Where, BroadcastsAllThree) {
  const Data y = run_text("graph(%c: bool[2,1], %a: f32[], %b: f32[3]) { %y = where(%c, %a, %b) return %y }",
                          {tensor(DType::Bool, {2, 1}, {1, 0}), f32({}, {kNaN}), f32({3}, {1, -0.0, 3})});
  expect_tensor(y[0], f32({2, 3}, {kNaN, kNaN, kNaN, 1, -0.0, 3}));
}

TEST(Where, ChoosesStrings) {
  const Data y = run_text("graph(%c: bool[2], %a: str[2], %b: str[2]) { %y = where(%c, %a, %b) return %y }",
                          {tensor(DType::Bool, {2}, {0, 1}), strings({"a", "b"}), strings({"c", "d"})});
  expect_tensor(y[0], strings({"c", "b"}));
}

TEST(Where, RefusesShapesThatDoNotBroadcast) {
  expect_error<UserError>(
      [] { parse_graph("graph(%c: bool[4], %a: f32[3], %b: f32[]) { %y = where(%c, %a, %b) return %y }"); },
      "line 1, column 50: where: the shapes do not broadcast\n  condition  %c: bool[4]\n  a  %a: f32[3]\n"
      "  b  %b: f32[]");
}

// Exporters write expand(x, [2, -1, 4]) like this: -1 stands for 1, so that the dimension of x stays.
TEST(Where, IsKnownWhereTheConditionIs) {
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n,m], %z: f32[1,1]) {
      %s = shape(%x)
      %minus_one = constant(value=i64[] {-1})
      %ones = constant(value=i64[2] {1, 1})
      %is_open = equal(%s, %minus_one)
      %target = where(%is_open, %ones, %s)
      %y = broadcast(%z, %target)
      return %y
    })"),
            "f32[n,m]");
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n], %z: f32[1]) {
      %s = shape(%x)
      %three = constant(value=i64[1] {3})
      %five = constant(value=i64[1] {5})
      %is_three = equal(%s, %three)
      %target = where(%is_three, %five, %s)
      %y = broadcast(%z, %target)
      return %y
    })"),
            "f32[d0]");  // n may be 3
}

TEST(Clip, TheUpperBoundWinsAndNaNStays) {
  const auto clip = [](const std::vector<double>& bounds) {
    return run_text("graph(%x: f32[4], %l: f32[], %h: f32[]) { %y = clip(%x, %l, %h) return %y }",
                    {f32({4}, {-2, 0.5, 2, kNaN}), f32({}, {bounds[0]}), f32({}, {bounds[1]})})[0];
  };
  expect_tensor(clip({-1, 1}), f32({4}, {-1, 0.5, 1, kNaN}));
  expect_tensor(clip({1, -1}), f32({4}, {-1, -1, -1, kNaN}));
}

TEST(Clip, EitherBoundMayBeAbsent) {
  const Tensor x = tensor(DType::U8, {3}, {0, 100, 255});
  const auto clip = [&](std::string_view bound) {
    return run_text(fmt::format("graph(%x: u8[3], %b: u8[]) {{ %y = clip(%x, {}=%b) return %y }}", bound),
                    {x, tensor(DType::U8, {}, {100})})[0];
  };
  expect_tensor(clip("min"), tensor(DType::U8, {3}, {100, 100, 255}));
  expect_tensor(clip("max"), tensor(DType::U8, {3}, {0, 100, 100}));
}

TEST(Cast, FloatsTruncateToIntegersAndIntegersWrap) {
  expect_tensor(cast(f32({4}, {2.9, -2.9, -0.0, kNaN}), "i32"), tensor(DType::I32, {4}, {2, -2, 0, 0}));
  expect_tensor(cast(tensor(DType::I16, {2}, {200, -129}), "i8"), tensor(DType::I8, {2}, {-56, 127}));
  expect_tensor(cast(f32({3}, {-9, 7, 8}), "i4"), tensor(DType::I4, {3}, {7, 7, -8}));
  expect_tensor(cast(f32({3}, {-9, 7, 8}), "i4", ", saturate=true"), tensor(DType::I4, {3}, {-8, 7, 7}));
  expect_tensor(cast(f32({4}, {0, -0.0, 0.5, kNaN}), "bool"), tensor(DType::Bool, {4}, {0, 0, 1, 1}));
}

TEST(Cast, OverflowsToInfinityUnlessSaturated) {
  const Tensor x = f32({3}, {1e6, -kInf, kNaN});
  expect_tensor(cast(x, "f16"), tensor(DType::F16, {3}, {kInf, -kInf, kNaN}));
  expect_tensor(cast(x, "f8e5m2", ", saturate=true"), tensor(DType::F8E5M2, {3}, {57344, -57344, kNaN}));
  expect_tensor(cast(x, "f8e4m3fn"), tensor(DType::F8E4M3FN, {3}, {kNaN, kNaN, kNaN}));
}

TEST(Cast, ScalesRoundAsAsked) {
  const Tensor x = f32({3}, {2.5, 3, 3.5});
  const auto scales = [](std::vector<double> values) { return tensor(DType::F8E8M0, {3}, values); };
  expect_tensor(cast(x, "f8e8m0"), scales({4, 4, 4}));
  expect_tensor(cast(x, "f8e8m0", ", scale_rounding=\"down\""), scales({2, 2, 2}));
  expect_tensor(cast(x, "f8e8m0", ", scale_rounding=\"nearest\""), scales({2, 4, 4}));
}

TEST(Cast, ReadsNumbersFromText) {
  expect_tensor(cast(strings({"3.14", "1e-5", "1E8", "+INF", "-inf", "nan", " 7 "}), "f64"),
                tensor(DType::F64, {7}, {3.14, 1e-5, 1e8, kInf, -kInf, kNaN, 7}));
  expect_tensor(cast(strings({"1e400", "-1.5e400", "1e-400", "-1e-400"}), "f64"),
                tensor(DType::F64, {4}, {kInf, -kInf, 0, -0.0}));
  expect_tensor(cast(strings({"100.5", "-3"}), "i64"), i64({2}, {100, -3}));
  // Beyond what a double holds exactly.
  const Tensor exact = cast(strings({"9223372036854775807"}), "i64").tensor();
  EXPECT_EQ(exact.data<int64_t>()[0], std::numeric_limits<int64_t>::max());
  for (const char* text : {"Hello", "", "1x", "+-1", "1e999x"})
    expect_error<UserError>([&] { cast(strings({text}), "f32"); },
                            fmt::format("node %y: cast: \"{}\" is not a number", text));
}

TEST(Cast, WritesNumbersPlainlyAndExactly) {
  expect_tensor(cast(f32({6}, {0.1, 314.15927, 1e10, 1e-7, kNaN, -kInf}), "str"),
                strings({"0.1", "314.15927", "10000000000", "0.0000001", "NaN", "-INF"}));
  expect_tensor(cast(tensor(DType::F64, {1}, {0.1}), "str"), strings({"0.1"}));
  expect_tensor(cast(i64({2}, {-5, 0}), "str"), strings({"-5", "0"}));
  EXPECT_EQ(cast(tensor(DType::F64, {1}, {-5e-324}), "str").tensor().strings()[0].size(), 327u);
}

TEST(Cast, RefusesWhatItCannotDo) {
  expect_error<UserError>([] { cast(f32({}, {1}), "c64"); },
                          "line 1, column 25: cast: numbers cannot become c64");
  expect_error<UserError>(
      [] { cast(f32({}, {1}), "f8e8m0", ", scale_rounding=\"even\""); },
      "line 1, column 25: cast: scale_rounding is \"even\", but must be up, down or nearest");
}

TEST(Cast, FollowsShapesThroughIntegers) {
  const auto type = [](std::string_view dtype) {
    return output_type(fmt::format(R"(
      graph(%x: f32[n,3]) {{
        %s = shape(%x)
        %narrow = cast(%s, to={})
        %back = cast(%narrow, to=i64)
        %zero = constant(value=f32[] {{0}})
        %y = broadcast(%zero, %back)
        return %y
      }})",
                                   dtype));
  };
  EXPECT_EQ(type("i32"), "f32[n,3]");
  EXPECT_EQ(type("i8"), "f32[d0,3]");  // n may not fit
  EXPECT_EQ(type("u64"), "f32[n,3]");
  EXPECT_EQ(output_type(R"(
    graph(%x: f32[n], %z: f32[1]) {
      %s = shape(%x)
      %two = constant(value=i64[1] {2})
      %less = sub(%s, %two)
      %wrapped = cast(%less, to=u64)
      %five = constant(value=u64[1] {5})
      %most = max(%wrapped, %five)
      %i = cast(%most, to=i64)
      %y = broadcast(%z, %i)
      return %y
    })"),
            "f32[d0]");  // n-2 may be negative
}

TEST(BitCast, KeepsTheBits) {
  const auto bit_cast = [](const Tensor& x, std::string_view to) {
    return run_text(fmt::format("graph(%x: {}) {{ %y = bit_cast(%x, to={}) return %y }}", type_of(x), to),
                    {x})[0];
  };
  expect_tensor(bit_cast(f32({2}, {1, -0.0}), "u32"), tensor(DType::U32, {2}, {0x3f800000, 0x80000000}));
  // Narrower than a byte: the sign fills the byte, or leaves it.
  const Tensor codes = tensor(DType::U4, {3}, {7, 8, 15});
  expect_tensor(bit_cast(codes, "i4"), tensor(DType::I4, {3}, {7, -8, -1}));
  expect_tensor(bit_cast(tensor(DType::I4, {3}, {7, -8, -1}), "u4"), codes);
  expect_tensor(bit_cast(codes, "f4e2m1"), tensor(DType::F4E2M1, {3}, {6, -0.0, -6}));
  expect_error<UserError>([&] { bit_cast(f32({}, {1}), "i64"); },
                          "line 1, column 25: bit_cast: f32 has 32 bits, but i64 has 64\n  x  %x: f32[]");
  expect_error<UserError>([&] { bit_cast(strings({"a"}), "i64"); },
                          "line 1, column 26: bit_cast: str has no fixed width\n  x  %x: str[1]");
}

}  // namespace
}  // namespace tenon
