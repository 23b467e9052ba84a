#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(SimplifyQuantised, LetsPairsMeetAcrossMovements) {
  expect_pass(simplify, R"(graph g(%x: u8[4,6]) {
    %s = constant(value=f32[] {0.5}) %z = constant(value=u8[] {3}) %0 = dequantize(%x, %s, %z, to=f32)
    %1 = transpose(%0, permutation=[1, 0]) %shape = constant(value=i64[1] {24}) %2 = reshape(%1, %shape)
    %y = quantize(%2, %s, %z, to=u8) return %y })",
              R"(graph g(%x: u8[4,6]) {
    %1 = transpose(%x, permutation=[1, 0]) %shape = constant(value=i64[1] {24}) %y = reshape(%1, %shape)
    return %y })",
              NumericsBudget::Strict);
}

TEST(SimplifyQuantised, KeepsTheScalesOfATransposedAxis) {
  expect_pass(simplify, R"(graph g(%x: i8[4,6,2], %s: f32[6]) {
    %0 = dequantize(%x, %s, to=f32, axis=-2) %y = transpose(%0, permutation=[1, 2, 0]) return %y })",
              R"(graph g(%x: i8[4,6,2], %s: f32[6]) {
    %0 = transpose(%x, permutation=[1, 2, 0]) %y = dequantize(%0, %s, to=f32, axis=0) return %y })");
}

TEST(SimplifyQuantised, LeavesScalesThatWouldHaveToMove) {
  expect_unchanged(simplify, R"(graph g(%x: i8[4,6], %s: f32[6]) {
    %0 = dequantize(%x, %s, to=f32) %shape = constant(value=i64[1] {24}) %y = reshape(%0, %shape) return %y })");
}

TEST(SimplifyQuantised, LeavesIntegersThatRoundingMoves) {
  expect_unchanged(simplify, R"(graph g(%x: i32[4]) {
    %s = constant(value=f32[] {0.3}) %0 = dequantize(%x, %s, to=f32) %y = quantize(%0, %s, to=i32) return %y })");
  expect_unchanged(simplify, R"(graph g(%x: i8[4]) {
    %s = constant(value=f16[] {0.3}) %0 = dequantize(%x, %s, to=bf16) %y = quantize(%0, %s, to=i8) return %y })");
}

TEST(SimplifyQuantised, DropsLimitsThatTheRangeSets) {
  expect_pass(simplify, R"(graph g(%x: f32[4]) {
    %s = constant(value=f32[] {0.125}) %z = constant(value=i8[] {-128}) %low = constant(value=f32[] {0})
    %high = constant(value=f32[] {31.9}) %0 = clip(%x, %low, %high) %y = quantize(%0, %s, %z, to=i8) return %y })",
              R"(graph g(%x: f32[4]) {
    %s = constant(value=f32[] {0.125}) %z = constant(value=i8[] {-128})
    %y = quantize(%x, %s, %z, to=i8) return %y })");
  expect_unchanged(simplify, R"(graph g(%x: f32[4]) {
    %s = constant(value=f32[] {0.125}) %z = constant(value=i8[] {-128}) %low = constant(value=f32[] {0})
    %high = constant(value=f32[] {31.7}) %0 = clip(%x, %low, %high) %y = quantize(%0, %s, %z, to=i8) return %y })");
}

TEST(FoldQuantised, KeepsTheProductOfDequantisedWeights) {
  expect_unchanged(fold_into_weights, R"(graph g(%x: f32[n,3,4]) {
    %w = constant(value=i4[4,2] {1, 2, 3, 4, 5, 6, 7, -8}) %s = constant(value=f32[2,2] {1, 2, 0.5, 4})
    %0 = dequantize(%w, %s, to=f32, axis=0, block_size=2) %y = matmul(%x, %0) return %y })");
  expect_pass(fold_into_weights, R"(graph g(%x: f32[n,3,4]) {
    %w = constant(value=i8[2,4] {1, 2, 3, 4, 5, 6, 7, -8}) %s = constant(value=f32[] {0.5})
    %0 = dequantize(%w, %s, to=f32) %1 = transpose(%0, permutation=[1, 0]) %y = matmul(%x, %1) return %y })",
              R"(graph g(%x: f32[n,3,4]) {
    %w = constant(value=i8[2,4] {1, 2, 3, 4, 5, 6, 7, -8}) %s = constant(value=f32[] {0.5})
    %0 = dequantize(%w, %s, to=f32) %y = linear(%x, %0) return %y })");
}

TEST(FoldQuantised, WritesLayersOfIntegersAsThoseOfNumbers) {
  expect_pass(fold_into_weights, R"(graph g(%x: f32[n,2], %s: f32[]) {
    %0 = parameter(name="s", value=f32[] {0.5}) %1 = constant(value=u8[] {3}) %q = quantize(%x, %0, %1, to=u8)
    %2 = cast(%q, to=i32) %3 = constant(value=i32[] {-3}) %4 = add(%2, %3)
    %w = constant(value=i32[2,2] {1, 2, 3, -4}) %5 = matmul(%4, %w) %6 = cast(%5, to=f32)
    %7 = constant(value=f32[] {0.25}) %8 = mul(%6, %7) %y = quantize(%8, %s, to=i8) return %y })",
              R"(graph g(%x: f32[n,2], %s: f32[]) {
    %0 = parameter(name="s", value=f32[] {0.5}) %1 = constant(value=u8[] {3}) %q = quantize(%x, %0, %1, to=u8)
    %w = constant(value=i32[2,2] {1, 2, 3, -4}) %7 = constant(value=f32[] {0.25})
    %2 = constant(value=i64[0] {}) %3 = reshape(%7, %2) %4 = div(%3, %0) %5 = constant(value=u8[] {3})
    %6 = dequantize(%q, %0, %5, to=f32) %8 = cast(%w, to=i8) %9 = dequantize(%8, %4, to=f32)
    %10 = matmul(%6, %9) %y = quantize(%10, %s, to=i8) return %y })");
}

// Scales that are found out when the model runs are for engines that compute with integers.
TEST(FoldQuantised, LeavesIntegersThatAreScaledAsTheModelRuns) {
  expect_unchanged(fold_into_weights, R"(graph g(%q: u8[n,2], %s: f32[]) {
    %2 = cast(%q, to=i32) %w = constant(value=i32[2,2] {1, 2, 3, -4}) %5 = matmul(%2, %w) %6 = cast(%5, to=f32)
    %8 = mul(%6, %s) %y = quantize(%8, %s, to=i8) return %y, %8 })");
}

}  // namespace
}  // namespace tenon
