#include "compiler/expect_compiled.h"

namespace tenon {

using compiler::compile;

namespace {

void expect_same_bytes(const Graph& graph, const Tensor& x) {
  const Tensor wanted = evaluate(graph, {x})[0].tensor(),
               got = compile(graph, without_cache())->run({x})[0].tensor();
  EXPECT_EQ(widen<double>(got), widen<double>(wanted)) << print(graph);
}

TEST(FoldScales, TakesFactorsAndWhatIsAddedIntoOne) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f32[64]) {
    %m = constant(value=f32[] {4}) %b = constant(value=f32[] {0.5})
    %s = constant(value=f32[] {0.25}) %z = constant(value=i8[] {3})
    %0 = mul(%x, %m) %1 = add(%0, %b) %q = quantize(%1, %s, %z, to=i8)
    return %q
  })");
  EXPECT_TRUE(has(kernels_in(*graph), "* 16 + 2")) << kernels_in(*graph);
  expect_same_bytes(*graph, numbers(DType::F32, {64}, 1));
}

// x is rounded to integers before it is quantised.
TEST(FoldScales, LeavesSumsThatRound) {
  for (const char* between : {"", "%m = constant(value=f32[] {2}) %u = mul(%t, %m)"})
    expect_same_bytes(
        *read(fmt::format(R"(graph g(%x: f32[64]) {{
      %c = constant(value=f32[] {{12582912}}) %d = constant(value=f32[] {{{}}})
      %s = constant(value=f32[] {{0.1}}) %z = constant(value=i8[] {{0}})
      %e = constant(value=f32[] {{5}}) %0 = mul(%x, %e)
      %t = add(%0, %c) {} %y = sub(%{}, %d) %q = quantize(%y, %s, %z, to=i8)
      return %q
    }})",
                          *between == 0 ? 12582912 : 25165824, between, *between == 0 ? "t" : "u")),
        numbers(DType::F32, {64}, 1));
}

// Both factors together are more than there is, and none of them alone.
TEST(FoldScales, LeavesFactorsThatOverflow) {
  expect_same_bytes(*read(R"(graph g(%x: f32[8]) {
    %c = constant(value=f32[] {1e30}) %d = constant(value=f32[] {1e29})
    %s = constant(value=f32[] {0.01}) %z = constant(value=i8[] {3})
    %0 = sub(%x, %x) %1 = mul(%0, %c) %2 = abs(%1) %3 = mul(%2, %d) %4 = mul(%3, %c) %q = quantize(%4, %s, %z, to=i8)
    return %q
  })"),
                    numbers(DType::F32, {8}, 1));
}

// Sums and what the zero point comes to are large, and nearly the same.
TEST(FoldScales, SubtractsZeroPointsFromLargeSumsExactly) {
  constexpr int64_t kSummed = 4096;
  std::string weights;
  for (int64_t i = 0; i < kSummed * 4; ++i)
    weights += fmt::format("{}{}", i == 0 ? "" : ", ", 64 + i * 7 % 61);
  const std::unique_ptr<Graph> graph = read(fmt::format(R"(graph g(%x: u8[3,{0}]) {{
    %s = constant(value=f32[] {{1}}) %z = constant(value=u8[] {{250}})
    %w = constant(value=i8[{0},4] {{{1}}}) %v = constant(value=i8[] {{0}})
    %t = constant(value=f32[] {{64}}) %o = constant(value=i8[] {{0}})
    %a = dequantize(%x, %s, %z, to=f32) %b = dequantize(%w, %s, %v, to=f32)
    %y = matmul(%a, %b) %q = quantize(%y, %t, %o, to=i8)
    return %q
  }})",
                                                        kSummed, weights));
  std::vector<double> bytes(3 * kSummed);
  for (size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = 250 + static_cast<double>(i * 13 % 97 == 0) - static_cast<double>(i * 11 % 89 == 0);
  expect_same_bytes(*graph, narrow<double>(DType::U8, {3, kSummed}, bytes));
}

}  // namespace
}  // namespace tenon
