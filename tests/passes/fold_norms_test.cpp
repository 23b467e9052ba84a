#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(FoldNorms, GivesLinearLayersTheScaleAndShiftBeforeThem) {
  expect_pass(fold_norms, R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[2] {1, 2}) %t = parameter(name="t", value=f32[2] {3, 4})
    %v = parameter(name="v", value=f32[1,2] {1, 2}) %w = parameter(name="w", value=f32[1,2] {3, 4})
    %b = parameter(name="b", value=f32[1] {7})
    %0 = layer_norm(%x, %s, %t) %y = linear(%0, %v) %z = linear(%0, %w, %b) return %y, %z })",
              R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[2] {1, 2}) %t = parameter(name="t", value=f32[2] {3, 4})
    %v = parameter(name="v", value=f32[1,2] {1, 2}) %w = parameter(name="w", value=f32[1,2] {3, 4})
    %b = parameter(name="b", value=f32[1] {7}) %0 = layer_norm(%x)
    %v1 = mul(%v, %s) %c1 = matmul(%v, %t) %y = linear(%0, %v1, %c1)
    %w1 = mul(%w, %s) %d1 = matmul(%w, %t) %d2 = add(%d1, %b) %z = linear(%0, %w1, %d2) return %y, %z })");
}

TEST(FoldNorms, GivesALinearLayerTheScaleOfARootMeanSquare) {
  expect_pass(fold_norms, R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[2] {1, 2}) %w = parameter(name="w", value=f32[1,2] {3, 4})
    %0 = rms_norm(%x, %s) %y = linear(%0, %w) return %y })",
              R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[2] {1, 2}) %w = parameter(name="w", value=f32[1,2] {3, 4})
    %0 = rms_norm(%x) %v = mul(%w, %s) %y = linear(%0, %v) return %y })");
}

TEST(FoldNorms, GivesALinearLayerProductsAndSumsPerFeature) {
  expect_pass(fold_norms, R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[1,2] {1, 2}) %t = parameter(name="t", value=f32[2] {3, 4})
    %w = parameter(name="w", value=f32[1,2] {3, 4}) %0 = add(%t, %x) %y = linear(%0, %w)
    %1 = mul(%y, %x) %2 = mul(%1, %s) %v = parameter(name="v", value=f32[1,2] {3, 4}) %z = linear(%2, %v)
    return %z })",
              R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[1,2] {1, 2}) %t = parameter(name="t", value=f32[2] {3, 4})
    %w = parameter(name="w", value=f32[1,2] {3, 4}) %c = matmul(%w, %t) %y = linear(%x, %w, %c)
    %1 = mul(%y, %x) %v = parameter(name="v", value=f32[1,2] {3, 4})
    %shape = constant(value=i64[1] {-1}) %s1 = reshape(%s, %shape) %v1 = mul(%v, %s1)
    %z = linear(%1, %v1) return %z })");
}

TEST(FoldNorms, GivesALinearLayerTheBatchNormAfterIt) {
  expect_pass(fold_norms, R"(graph g(%x: f32[n,3,2]) {
    %w = parameter(name="w", value=f32[4,2] {1, 2, 3, 4, 5, 6, 7, 8}) %s = parameter(name="s", value=f32[4] {1, 2, 3, 4})
    %0 = linear(%x, %w) %1 = transpose(%0, permutation=[0, 2, 1]) %shape = constant(value=i64[4] {-1, 4, 3, 1})
    %2 = reshape(%1, %shape) %y = batch_norm(%2, %s, %s, %s, %s, epsilon=0.5) return %y })",
              R"(graph g(%x: f32[n,3,2]) {
    %w = parameter(name="w", value=f32[4,2] {1, 2, 3, 4, 5, 6, 7, 8}) %s = parameter(name="s", value=f32[4] {1, 2, 3, 4})
    %shape = constant(value=i64[4] {-1, 4, 3, 1})
    %e = constant(value=f32[] {0.5}) %v = add(%s, %e) %d = sqrt(%v) %f = div(%s, %d) %m = mul(%s, %f)
    %t = sub(%s, %m) %c = constant(value=i64[2] {-1, 1}) %f1 = reshape(%f, %c) %w1 = mul(%w, %f1)
    %0 = linear(%x, %w1, %t) %1 = transpose(%0, permutation=[0, 2, 1]) %y = reshape(%1, %shape) return %y })");
}

TEST(FoldNorms, GivesALinearLayerTheBatchNormBeforeIt) {
  expect_pass(fold_norms, R"(graph g(%x: f32[n,2]) {
    %w = parameter(name="w", value=f32[1,2] {1, 2}) %s = parameter(name="s", value=f32[2] {1, 2})
    %h = parameter(name="h", value=f32[2] {3, 4}) %m = parameter(name="m", value=f32[2] {5, 6})
    %v = parameter(name="v", value=f32[2] {7, 8})
    %0 = batch_norm(%x, %s, %h, %m, %v, epsilon=0.5) %y = linear(%0, %w) return %y })",
              R"(graph g(%x: f32[n,2]) {
    %w = parameter(name="w", value=f32[1,2] {1, 2}) %s = parameter(name="s", value=f32[2] {1, 2})
    %h = parameter(name="h", value=f32[2] {3, 4}) %m = parameter(name="m", value=f32[2] {5, 6})
    %v = parameter(name="v", value=f32[2] {7, 8})
    %e = constant(value=f32[] {0.5}) %u = add(%v, %e) %d = sqrt(%u) %f = div(%s, %d) %g = mul(%m, %f)
    %t = sub(%h, %g) %w1 = mul(%w, %f) %b = matmul(%w, %t) %y = linear(%x, %w1, %b) return %y })");
}

TEST(FoldNorms, LeavesAChannelThatIsNoFeature) {
  expect_unchanged(fold_norms, R"(graph g(%x: f32[n,4,2]) {
    %w = parameter(name="w", value=f32[4,2] {1, 2, 3, 4, 5, 6, 7, 8}) %s = parameter(name="s", value=f32[4] {1, 2, 3, 4})
    %0 = linear(%x, %w) %y = batch_norm(%0, %s, %s, %s, %s) return %y })");
}

TEST(FoldNorms, LeavesAScaleThatOthersUse) {
  const Journal journal = expect_unchanged(fold_norms, R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[2] {1, 2}) %w = parameter(name="w", value=f32[2,2] {1, 2, 3, 4})
    %0 = rms_norm(%x, %s) %1 = linear(%0, %w) %y = add(%0, %1) return %y })");
  EXPECT_EQ(only_remark(journal), "not only linear layers use it, so it would still be computed");
}

TEST(FoldNorms, AddsNoNumbers) {
  const Journal journal = expect_unchanged(fold_norms, R"(graph g(%x: f32[n,1]) {
    %t = parameter(name="t", value=f32[1] {1}) %w = parameter(name="w", value=f32[3,1] {1, 2, 3})
    %0 = add(%x, %t) %y = linear(%0, %w) return %y })");
  EXPECT_EQ(only_remark(journal), "the biases of the linear layers after it would be 2 numbers more");
}

TEST(FoldNorms, LeavesASumWithOtherDimensions) {
  expect_unchanged(fold_norms, R"(graph g(%x: f32[n,3,2]) {
    %t = parameter(name="t", value=f32[3,2] {1, 2, 3, 4, 5, 6}) %w = parameter(name="w", value=f32[1,2] {1, 2})
    %0 = add(%x, %t) %y = linear(%0, %w) return %y })");
}

TEST(FoldNorms, LeavesQuantisedWeights) {
  const Journal journal = expect_unchanged(fold_norms, R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[2] {1, 2}) %q = constant(value=i8[1,2] {1, 2})
    %f = constant(value=f32[] {0.5}) %w = dequantize(%q, %f, to=f32)
    %0 = rms_norm(%x, %s) %y = linear(%0, %w) return %y })");
  EXPECT_EQ(only_remark(journal), "the weights of a linear layer after it are quantised");
  expect_unchanged(fold_into_weights, R"(graph g(%x: f32[n,2]) {
    %q = constant(value=i8[1,2] {1, 2}) %f = constant(value=f32[] {0.5}) %w = dequantize(%q, %f, to=f32)
    %0 = linear(%x, %w) %y = mul(%0, %f) return %y })");
}

TEST(FoldNorms, SaysWhyALinearLayerIsNotFoldedIntoTheNormAfterIt) {
  const Journal journal = expect_unchanged(fold_norms, R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[2] {1, 2}) %w = parameter(name="w", value=f32[2,2] {1, 2, 3, 4})
    %0 = linear(%x, %w) %y = layer_norm(%0, %s, %s) return %y })");
  EXPECT_EQ(only_remark(journal), "its mean and variance depend on the data; fuse the kernels instead");
}

TEST(FoldNorms, DoesNothingWhereBitsCount) {
  expect_unchanged(fold_norms, R"(graph g(%x: f32[n,2]) {
    %s = parameter(name="s", value=f32[2] {1, 2}) %w = parameter(name="w", value=f32[1,2] {3, 4})
    %0 = rms_norm(%x, %s) %y = linear(%0, %w) return %y })",
                   NumericsBudget::Strict);
}

// The model makes sense as long as n is not known to be 3, for which the scale is too short.
TEST(FoldNorms, LeavesAScaleThatDoesNotFitTheLayer) {
  const Journal journal = expect_unchanged(fold_norms, R"(graph g(%x: f32[n,n]) {
    %s = parameter(name="s", value=f32[1] {2}) %w = parameter(name="w", value=f32[3,3] splat 1)
    %b = parameter(name="b", value=f32[3] splat 1)
    %0 = batch_norm(%x, %s, %s, %s, %s) %y = linear(%0, %w, %b) return %y })");
  EXPECT_EQ(only_remark(journal).substr(0, 32), "matmul: inner dimensions differ\n");
}

}  // namespace
}  // namespace tenon
