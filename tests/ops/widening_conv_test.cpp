#include "ir/graph_text.h"

namespace tenon {
namespace {

// As the convolution of integers around which there is a border.
TEST(WideningConv, SeesTheBorder) {
  const Tensor x = narrow<uint64_t>(DType::U8, {1, 1, 2, 2}, std::vector<uint64_t>{1, 2, 3, 255});
  const Tensor w = narrow<double>(DType::F32, {1, 1, 2, 2}, std::vector<double>{1, -1, 2, 0});
  const std::string text =
      "graph(%x: u8[1,1,2,2], %w: f32[1,1,2,2]) { %y = widening_conv(%x, %w, accumulator=f32, "
      "pads=[0,1,0,0], border=10) return %y }";
  EXPECT_EQ(output_type(text), "f32[1,1,1,2]");
  expect_tensor(run_text(text, {x, w})[0],
                narrow<double>(DType::F32, {1, 1, 1, 2}, std::vector<double>{10 - 1 + 20, 1 - 2 + 6}));
}

// 255 * -128 + 1 * 127, and so on: those of x have no sign.
TEST(WideningConv, SumsBytesInIntegersByGroups) {
  const Tensor x = narrow<uint64_t>(DType::U8, {1, 4, 1}, std::vector<uint64_t>{255, 1, 0, 2});
  const Tensor w = narrow<int64_t>(DType::I8, {2, 2, 1}, std::vector<int64_t>{-128, 127, 5, 127});
  const std::string text =
      "graph(%x: u8[n,4,m], %w: i8[2,2,1]) { %y = widening_conv(%x, %w, accumulator=i32, groups=2) return %y "
      "}";
  EXPECT_EQ(output_type(text), "i32[n,2,m]");
  expect_tensor(run_text(text, {x, w})[0],
                narrow<int64_t>(DType::I32, {1, 2, 1}, std::vector<int64_t>{-255 * 128 + 127, 2 * 127}));
}

TEST(WideningConv, RefusesWhatDoesNotFit) {
  for (const char* text :
       {"graph(%x: u8[1,8,5], %w: i8[2,4,1]) { %y = widening_conv(%x, %w, accumulator=i32) return %y }",
        "graph(%x: u8[1,8,5], %w: f32[3,4,1]) { %y = widening_conv(%x, %w, accumulator=f32, groups=2) "
        "return %y }",
        "graph(%x: u8[1,8,5], %w: f32[4,8,1]) { %y = widening_conv(%x, %w, accumulator=f32, border=256) "
        "return %y }",
        "graph(%x: u8[1,8,5], %w: f32[4,8,1]) { %y = widening_conv(%x, %w, accumulator=i32) return %y }",
        "graph(%x: u8[8], %w: i8[]) { %y = widening_conv(%x, %w, accumulator=i32) return %y }"})
    EXPECT_THROW(output_type(text), UserError) << text;
}

}  // namespace
}  // namespace tenon
