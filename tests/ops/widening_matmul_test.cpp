#include "ir/graph_text.h"

namespace tenon {
namespace {

// 255 * -128 + 1 * 127 + 2 * 127, and so on: those of a have no sign.
TEST(WideningMatmul, SumsBytesInIntegers) {
  const std::string text =
      "graph(%a: u8[n,3], %b: i8[3,2]) { %y = widening_matmul(%a, %b, accumulator=i32) return %y }";
  EXPECT_EQ(output_type(text), "i32[n,2]");
  const Tensor a = narrow<uint64_t>(DType::U8, {2, 3}, std::vector<uint64_t>{255, 1, 2, 0, 0, 3}),
               b = narrow<int64_t>(DType::I8, {3, 2}, std::vector<int64_t>{-128, 1, 127, 0, 127, -1});
  expect_tensor(run_text(text, {a, b})[0],
                narrow<int64_t>(DType::I32, {2, 2},
                                std::vector<int64_t>{-255 * 128 + 127 + 2 * 127, 253, 3 * 127, -3}));
}

// 1 * 3 + 2⁻⁸ * 1, which has no room in bf16.
TEST(WideningMatmul, SumsBf16InF32) {
  const std::string text =
      "graph(%a: bf16[2,n,2], %b: bf16[2,1]) { %y = widening_matmul(%a, %b, accumulator=f32) return %y }";
  EXPECT_EQ(output_type(text), "f32[2,n,1]");
  const Tensor a = narrow<double>(DType::BF16, {2, 1, 2}, std::vector<double>{1, 1.0 / 256, -2, 0.5}),
               b = narrow<double>(DType::BF16, {2, 1}, std::vector<double>{3, 1});
  expect_tensor(run_text(text, {a, b})[0],
                narrow<double>(DType::F32, {2, 1, 1}, std::vector<double>{3 + 1.0 / 256, -5.5}));
}

TEST(WideningMatmul, TakesNoRowsAndEmptySums) {
  const std::string text =
      "graph(%a: u8[n,m], %b: i8[m,2]) { %y = widening_matmul(%a, %b, accumulator=f32) return %y }";
  expect_tensor(run_text(text, {Tensor(DType::U8, {0, 3}), Tensor(DType::I8, {3, 2})})[0],
                Tensor(DType::F32, {0, 2}));
  expect_tensor(run_text(text, {Tensor(DType::U8, {1, 0}), Tensor(DType::I8, {0, 2})})[0],
                narrow<double>(DType::F32, {1, 2}, std::vector<double>{0, 0}));
}

TEST(WideningMatmul, RefusesWhatDoesNotFit) {
  for (const char* text :
       {"graph(%a: u8[3,2], %b: i8[3,1]) { %y = widening_matmul(%a, %b, accumulator=i32) return %y }",
        "graph(%a: u8[3,2], %b: i8[1,2,1]) { %y = widening_matmul(%a, %b, accumulator=i32) return %y }",
        "graph(%a: u8[], %b: i8[2,1]) { %y = widening_matmul(%a, %b, accumulator=i32) return %y }",
        "graph(%a: bf16[3,2], %b: bf16[2,1]) { %y = widening_matmul(%a, %b, accumulator=i32) return %y }",
        "graph(%a: u8[3,2], %b: i8[2,1]) { %y = widening_matmul(%a, %b, accumulator=i16) return %y }",
        "graph(%a: f32[3,2], %b: i8[2,1]) { %y = widening_matmul(%a, %b, accumulator=f32) return %y }"})
    EXPECT_THROW(output_type(text), UserError) << text;
}

}  // namespace
}  // namespace tenon
