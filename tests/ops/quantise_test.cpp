#include <cmath>
#include <limits>

#include "ir/graph_text.h"

namespace tenon {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

std::string text(std::string_view op, const std::vector<std::string>& types, std::string_view attributes) {
  const char* names[] = {"%x", "%scale", "%zero"};
  std::string inputs, operands;
  for (size_t i = 0; i < types.size(); ++i) {
    inputs += fmt::format("{}{}: {}", i == 0 ? "" : ", ", names[i], types[i]);
    operands += fmt::format("{}, ", names[i]);
  }
  return fmt::format("graph({}) {{ %y = {}({}{}) return %y }}", inputs, op, operands, attributes);
}

Datum run(std::string_view op, const std::vector<Tensor>& operands, std::string_view attributes) {
  std::vector<std::string> types;
  for (const Tensor& operand : operands)
    types.push_back(to_string(type_of(operand)));
  return run_text(text(op, types, attributes), Data(operands.begin(), operands.end()))[0];
}

void refuse(std::string_view op, const std::vector<std::string>& types, std::string_view attributes,
            std::string_view message) {
  try {
    parse_graph(text(op, types, attributes));
    FAIL() << "it was taken";
  } catch (const UserError& error) {
    const std::string what = error.what();
    EXPECT_EQ(what.substr(what.find(op)), message);
  }
}

TEST(Quantize, RoundsHalvesToEvenAndSaturates) {
  const Tensor x = f32({8}, {0.5, 1.5, 2.5, -0.5, 1000, -1000, kInf, std::nan("")});
  const Tensor scale = f32({}, {1}), zero = tensor(DType::U8, {}, {10});
  expect_tensor(run("quantize", {x, scale, zero}, "to=u8"),
                tensor(DType::U8, {8}, {10, 12, 12, 10, 255, 0, 255, 0}));
  expect_tensor(run("quantize", {x, scale}, "to=i4"), tensor(DType::I4, {8}, {0, 2, 2, 0, 7, -8, 7, 0}));
}

TEST(Quantize, DividesInTheDTypeOfTheScale) {
  // In f32 the quotient is 3.5, which rounds to 4; before that rounding it is a little less.
  const float x = 0.35F, scale = 0.1F;
  ASSERT_LT(static_cast<double>(x) / static_cast<double>(scale), 3.5);
  expect_tensor(run("quantize", {f32({1}, {x}), f32({}, {scale})}, "to=u8"), tensor(DType::U8, {1}, {4}));
}

TEST(Quantize, FloatsSaturateOrOverflow) {
  const Tensor x = f32({3}, {1000, -0.0, kInf}), scale = f32({}, {1});
  expect_tensor(run("quantize", {x, scale}, "to=f8e4m3fn"), tensor(DType::F8E4M3FN, {3}, {448, -0.0, 448}));
  expect_tensor(run("quantize", {x, scale}, "to=f8e5m2, saturate=false"),
                tensor(DType::F8E5M2, {3}, {1024, -0.0, kInf}));
}

TEST(Quantize, ScalesPerAxisAndPerBlock) {
  const Tensor x = f32({2, 3}, {2, 4, 6, 10, 20, 30});
  expect_tensor(run("quantize", {x, f32({2}, {2, 10})}, "to=i8, axis=0"),
                tensor(DType::I8, {2, 3}, {1, 2, 3, 1, 2, 3}));
  expect_tensor(
      run("quantize", {x, f32({3}, {1, 2, 3}), tensor(DType::I8, {3}, {0, 1, 2})}, "to=i8, axis=-1"),
      tensor(DType::I8, {2, 3}, {2, 3, 4, 10, 11, 12}));
  // The last block is not whole.
  expect_tensor(run("quantize", {x, f32({2, 2}, {2, 3, 10, 15})}, "to=i8, axis=1, block_size=2"),
                tensor(DType::I8, {2, 3}, {1, 2, 2, 1, 2, 2}));
  expect_tensor(run("quantize", {x, f32({1, 3}, {2, 2, 2})}, "to=i8, axis=0, block_size=2"),
                tensor(DType::I8, {2, 3}, {1, 2, 3, 5, 10, 15}));
}

TEST(Quantize, OfNothingIsNothing) {
  expect_tensor(run("quantize", {f32({2, 0}, {}), f32({2}, {1, 1})}, "to=u8, axis=0"),
                tensor(DType::U8, {2, 0}, {}));
  expect_tensor(
      run("dequantize", {tensor(DType::I8, {0, 2}, {}), f32({0, 2}, {})}, "to=f32, axis=0, block_size=4"),
      f32({0, 2}, {}));
}

TEST(Quantize, InfersTheShapeOfXEvenWithoutThatOfTheScale) {
  EXPECT_EQ(output_type(text("quantize", {"f32[n,4]", "f32[*]"}, "to=u4")), "u4[n,4]");
  EXPECT_EQ(output_type(text("dequantize", {"i4[*]", "f16[8]", "i4[8]"}, "to=f16")), "f16[*]");
}

TEST(Dequantize, SubtractsTheZeroPointWithoutWrapping) {
  expect_tensor(
      run("dequantize", {tensor(DType::U8, {2}, {0, 255}), f32({1}, {0.5}), tensor(DType::U8, {}, {128})},
          "to=f32"),
      f32({2}, {-64, 63.5}));
  expect_tensor(
      run("dequantize",
          {tensor(DType::I8, {2}, {-128, 127}), tensor(DType::F16, {}, {2}), tensor(DType::I8, {}, {127})},
          "to=f16"),
      tensor(DType::F16, {2}, {-510, 0}));
  expect_tensor(
      run("dequantize", {tensor(DType::F4E2M1, {2}, {-6, 0.5}), tensor(DType::F8E8M0, {}, {4})}, "to=f32"),
      f32({2}, {-24, 2}));
}

TEST(Quantize, RefusesScalesThatDoNotFit) {
  refuse("quantize", {"f32[2,3]", "f32[2]"}, "to=u8",
         "quantize: there are 2 scales for the 3 steps along axis 1\n  x  %x: f32[2,3]\n  scale  %scale: "
         "f32[2]");
  refuse("quantize", {"f32[2,3]", "f32[2,3]"}, "to=u8",
         "quantize: scale must be one number, a vector, or have the rank of x and a block_size\n  x  %x: "
         "f32[2,3]\n  scale  %scale: f32[2,3]");
  refuse(
      "dequantize", {"u8[2,5]", "f32[2,2]"}, "to=f32, block_size=2",
      "dequantize: blocks of 2 along axis 1 need 3 scales in dimension 1\n  x  %x: u8[2,5]\n  scale  %scale: "
      "f32[2,2]");
  refuse("quantize", {"f32[2,3]", "f32[3]", "u8[2]"}, "to=u8",
         "quantize: zero_point must have the shape of scale\n  x  %x: f32[2,3]\n  scale  %scale: f32[3]\n  "
         "zero_point  %zero: u8[2]");
  refuse("quantize", {"f32[3]", "f32[3]"}, "to=u8",
         "quantize: axis 1 is out of range for a tensor of rank 1");
  refuse("quantize", {"f32[3]", "f32[]"}, "to=u8, block_size=-1", "quantize: a block_size of -1 is no size");
}

TEST(Quantize, RefusesDTypesThatDoNotFit) {
  refuse("quantize", {"f32[3]", "f32[]", "i8[]"}, "to=u8",
         "quantize: zero_point must have the dtype of the result, u8\n  x  %x: f32[3]\n  scale  %scale: "
         "f32[]\n  "
         "zero_point  %zero: i8[]");
  refuse("quantize", {"f32[3]", "f32[]"}, "to=bool", "quantize: numbers cannot be quantized to bool");
  refuse("dequantize", {"u8[3]", "f32[]"}, "to=i32", "dequantize: its result must be floats, not i32");
  refuse("dequantize", {"u8[3]", "f32[]", "i8[]"}, "to=f32",
         "dequantize: zero_point is i8[], but must have the dtype of x, u8");
}

TEST(Quantize, ChecksShapesAgainWhenItRuns) {
  const auto run = [](const Tensor& scale, const Tensor& zero) {
    return run_text(
        "graph(%x: f32[*], %scale: f32[*], %zero: u8[*]) { %y = quantize(%x, %scale, %zero, to=u8) "
        "return %y }",
        {f32({2, 3}, {1, 2, 3, 4, 5, 6}), scale, zero});
  };
  expect_error<UserError>(
      [&] {
        run(f32({2}, {1, 1}), tensor(DType::U8, {2}, {0, 0}));
      },
      "node %y: quantize: scale has the shape [2], but [3] was wanted");
  expect_error<UserError>(
      [&] {
        run(f32({3}, {1, 1, 1}), tensor(DType::U8, {2}, {0, 0}));
      },
      "node %y: quantize: zero_point has the shape [2], but scale [3]");
}

// --- dynamic_quantize

Data quantize_dynamically(const Tensor& x) {
  return run_text(fmt::format("graph(%x: {}) {{ %y, %s, %z = dynamic_quantize(%x) return %y, %s, %z }}",
                              to_string(type_of(x))),
                  {x});
}

TEST(DynamicQuantize, MakesTheRangeFitWithZeroInIt) {
  const Data both = quantize_dynamically(f32({4}, {-1, 0, 0.5, 1.55}));
  expect_tensor(both[0], tensor(DType::U8, {4}, {0, 100, 150, 255}));
  expect_tensor(both[1], tensor(DType::F32, {}, {0.01}));
  expect_tensor(both[2], tensor(DType::U8, {}, {100}));
  const Data above = quantize_dynamically(f32({2}, {51, 255}));
  expect_tensor(above[0], tensor(DType::U8, {2}, {51, 255}));
  expect_tensor(above[2], tensor(DType::U8, {}, {0}));
  const Data below = quantize_dynamically(f32({2}, {-51, -255}));
  expect_tensor(below[0], tensor(DType::U8, {2}, {204, 0}));
  expect_tensor(below[2], tensor(DType::U8, {}, {255}));
}

TEST(DynamicQuantize, TakesZerosAndNothing) {
  expect_tensor(quantize_dynamically(f32({2}, {0, 0}))[0], tensor(DType::U8, {2}, {0, 0}));
  expect_tensor(quantize_dynamically(f32({0}, {}))[1], tensor(DType::F32, {}, {0}));
}

}  // namespace
}  // namespace tenon
