#include "ir/graph_text.h"

namespace tenon {
namespace {

TEST(Pairs, HaveTheFirstNumberLowest) {
  const std::string text = "graph(%x: bf16[n,4]) { %y = words(%x) return %y }";
  EXPECT_EQ(output_type(text), "i32[n,2]");
  const Tensor x = narrow<double>(DType::BF16, {1, 4}, std::vector<double>{1, -2, 0, 1});
  expect_tensor(run_text(text, {x})[0],
                narrow<int64_t>(DType::I32, {1, 2}, std::vector<int64_t>{-0x3fffc080, 0x3f800000}));
}

TEST(Pairs, TakeWholeOnesOnly) {
  for (const char* type : {"bf16[3]", "bf16[]", "bf16[2,n]", "f16[2]"})
    EXPECT_THROW(output_type(fmt::format("graph(%x: {}) {{ %y = words(%x) return %y }}", type)), UserError);
}

// 1 * 3 + -2 * 0.5, and 0 * 1 + 1 * -1.
TEST(Pairs, AreMultipliedNumberByNumber) {
  const std::string text =
      "graph(%a: bf16[n,4], %b: bf16[2,1,2]) { %0 = words(%a) %1 = words(%b) %s = constant(value=i64[2] {2, "
      "1}) "
      "%2 = reshape(%1, %s) %y = matmul_pairs(%0, %2) return %y }";
  EXPECT_EQ(output_type(text), "f32[n,1]");
  const Tensor a = narrow<double>(DType::BF16, {1, 4}, std::vector<double>{1, -2, 0, 1}),
               b = narrow<double>(DType::BF16, {2, 1, 2}, std::vector<double>{3, 0.5, 1, -1});
  expect_tensor(run_text(text, {a, b})[0], narrow<double>(DType::F32, {1, 1}, std::vector<double>{1}));
  EXPECT_THROW(output_type("graph(%a: i32[3,2], %b: i32[3,1]) { %y = matmul_pairs(%a, %b) return %y }"),
               UserError);
}

}  // namespace
}  // namespace tenon
