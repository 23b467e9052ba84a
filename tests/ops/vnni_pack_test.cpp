#include "ir/graph_text.h"

namespace tenon {
namespace {

TEST(VnniPack, HaveTheFirstByteLowest) {
  const std::string text = "graph(%x: u8[n,8]) { %y = words(%x) return %y }";
  EXPECT_EQ(output_type(text), "i32[n,2]");
  const Tensor x = narrow<uint64_t>(DType::U8, {1, 8}, std::vector<uint64_t>{1, 2, 3, 4, 255, 0, 0, 128});
  expect_tensor(run_text(text, {x})[0],
                narrow<int64_t>(DType::I32, {1, 2}, std::vector<int64_t>{0x04030201, -2147483393}));
}

TEST(VnniPack, TakeWholeOnesOnly) {
  for (const char* type : {"u8[6]", "u8[]", "i8[2,n]"})
    EXPECT_THROW(output_type(fmt::format("graph(%x: {}) {{ %y = words(%x) return %y }}", type)), UserError);
}

// 255 * -128 + 1 * 127, and so on: those of the first have no sign.
TEST(VnniPack, AreMultipliedByteByByte) {
  const std::string text = "graph(%a: i32[n,2], %b: i32[2,1]) { %y = matmul_words(%a, %b) return %y }";
  EXPECT_EQ(output_type(text), "i32[n,1]");
  const Tensor a = narrow<int64_t>(DType::I32, {1, 2}, std::vector<int64_t>{0x000001ff, 0x02000000}),
               b = narrow<int64_t>(DType::I32, {2, 1}, std::vector<int64_t>{0x00007f80, 0x7f000000});
  expect_tensor(run_text(text, {a, b})[0],
                narrow<int64_t>(DType::I32, {1, 1}, std::vector<int64_t>{-255 * 128 + 127 + 2 * 127}));
  EXPECT_THROW(output_type("graph(%a: i32[3,2], %b: i32[3,1]) { %y = matmul_words(%a, %b) return %y }"),
               UserError);
}

}  // namespace
}  // namespace tenon
