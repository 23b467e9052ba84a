#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(MergeSiblings, JoinsLinearLayersOfOneValue) {
  expect_pass(merge_siblings, R"(graph g(%x: f32[n,2]) {
    %v = parameter(name="v", value=f32[1,2] {1, 2}) %c = parameter(name="c", value=f32[1] {7})
    %y = linear(%x, %v, %c) %e = exp(%y)
    %w = parameter(name="w", value=f32[3,2] {1, 2, 3, 4, 5, 6}) %b = parameter(name="b", value=f32[3] {1, 2, 3})
    %z = linear(%x, %w, %b) return %e, %z })",
              R"(graph g(%x: f32[n,2]) {
    %v = parameter(name="v", value=f32[1,2] {1, 2}) %c = parameter(name="c", value=f32[1] {7})
    %w = parameter(name="w", value=f32[3,2] {1, 2, 3, 4, 5, 6}) %b = parameter(name="b", value=f32[3] {1, 2, 3})
    %weight = concat([%v, %w], axis=0) %bias = concat([%c, %b], axis=0) %all = linear(%x, %weight, %bias)
    %sizes = constant(value=i64[2] {1, 3}) %y, %z = split(%all, %sizes, axis=-1) %e = exp(%y)
    return %e, %z })",
              NumericsBudget::Strict);
}

TEST(MergeSiblings, JoinsProductsOfIntegers) {
  expect_pass(merge_siblings, R"(graph g(%x: i32[n,2]) {
    %v = constant(value=i32[2,1] {1, 2}) %y = matmul(%x, %v)
    %w = constant(value=i32[2,2] {3, 4, 5, 6}) %z = matmul(%x, %w) return %y, %z })",
              R"(graph g(%x: i32[n,2]) {
    %v = constant(value=i32[2,1] {1, 2}) %w = constant(value=i32[2,2] {3, 4, 5, 6})
    %both = concat([%v, %w], axis=-1) %all = matmul(%x, %both)
    %sizes = constant(value=i64[2] {1, 2}) %y, %z = split(%all, %sizes, axis=-1) return %y, %z })");
}

TEST(MergeSiblings, JoinsQuantisedWeightsAsTheyAreHeld) {
  expect_pass(merge_siblings, R"(graph g(%x: i32[n,2]) {
    %v = constant(value=i8[2,1] {1, 2}) %wide_v = cast(%v, to=i32) %y = matmul(%x, %wide_v)
    %w = constant(value=i8[2,2] {3, 4, 5, 6}) %wide_w = cast(%w, to=i32) %z = matmul(%x, %wide_w)
    return %y, %z })",
              R"(graph g(%x: i32[n,2]) {
    %v = constant(value=i8[2,1] {1, 2}) %w = constant(value=i8[2,2] {3, 4, 5, 6})
    %both = concat([%v, %w], axis=-1) %wide = cast(%both, to=i32) %all = matmul(%x, %wide)
    %sizes = constant(value=i64[2] {1, 2}) %y, %z = split(%all, %sizes, axis=-1) return %y, %z })");
}

// One zero point for all columns, or one for each.
TEST(MergeSiblings, JoinsZeroPointsOfQuantisedWeights) {
  expect_pass(merge_siblings, R"(graph g(%x: i32[n,2]) {
    %v = constant(value=u8[2,1] {1, 2}) %wide_v = cast(%v, to=i32)
    %less_v = constant(value=i32[] {7}) %b_v = sub(%wide_v, %less_v) %y = matmul(%x, %b_v)
    %w = constant(value=u8[2,2] {3, 4, 5, 6}) %wide_w = cast(%w, to=i32)
    %less_w = constant(value=i32[2] {8, 9}) %b_w = sub(%wide_w, %less_w) %z = matmul(%x, %b_w)
    return %y, %z })",
              R"(graph g(%x: i32[n,2]) {
    %v = constant(value=u8[2,1] {1, 2}) %less_v = constant(value=i32[] {7})
    %w = constant(value=u8[2,2] {3, 4, 5, 6}) %less_w = constant(value=i32[2] {8, 9})
    %shape_v = constant(value=i64[2] {1, 1}) %zero_v = broadcast(%less_v, %shape_v)
    %shape_w = constant(value=i64[2] {1, 2}) %zero_w = broadcast(%less_w, %shape_w)
    %both = concat([%v, %w], axis=-1) %wide = cast(%both, to=i32)
    %zeros = concat([%zero_v, %zero_w], axis=-1) %b = sub(%wide, %zeros) %all = matmul(%x, %b)
    %sizes = constant(value=i64[2] {1, 2}) %y, %z = split(%all, %sizes, axis=-1) return %y, %z })");
}

TEST(MergeSiblings, JoinsConvolutionsWithTheirBiases) {
  expect_pass(merge_siblings, R"(graph g(%x: f32[n,2,5]) {
    %v = parameter(name="v", value=f32[1,2,1] {1, 2}) %c = parameter(name="c", value=f32[1,1,1] {7})
    %0 = conv(%x, %v, strides=[1], dilations=[1], pads=[0, 0]) %y = add(%c, %0)
    %w = parameter(name="w", value=f32[2,2,1] {1, 2, 3, 4}) %b = parameter(name="b", value=f32[2,1] {1, 2})
    %1 = conv(%x, %w, strides=[1], dilations=[1], pads=[0, 0]) %z = add(%1, %b) return %y, %z })",
              R"(graph g(%x: f32[n,2,5]) {
    %v = parameter(name="v", value=f32[1,2,1] {1, 2}) %c = parameter(name="c", value=f32[1,1,1] {7})
    %w = parameter(name="w", value=f32[2,2,1] {1, 2, 3, 4}) %b = parameter(name="b", value=f32[2,1] {1, 2})
    %both = concat([%v, %w], axis=0) %shape = constant(value=i64[2] {-1, 1}) %d = reshape(%c, %shape)
    %bias = concat([%d, %b], axis=0) %0 = conv(%x, %both, strides=[1], dilations=[1], pads=[0, 0])
    %all = add(%0, %bias) %sizes = constant(value=i64[2] {1, 2}) %y, %z = split(%all, %sizes, axis=1)
    return %y, %z })");
}

TEST(MergeSiblings, LeavesKernelsAndStridesThatDiffer) {
  expect_unchanged(merge_siblings, R"(graph g(%x: f32[n,2,5]) {
    %u = parameter(name="u", value=f32[1,2,1] {1, 2}) %v = parameter(name="v", value=f32[1,2,1] {1, 2})
    %w = parameter(name="w", value=f32[1,2,2] {1, 2, 3, 4})
    %0 = conv(%x, %u, strides=[1], dilations=[1], pads=[0, 0])
    %1 = conv(%x, %v, strides=[2], dilations=[1], pads=[0, 0])
    %2 = conv(%x, %w, strides=[1], dilations=[1], pads=[0, 0]) return %0, %1, %2 })");
}

TEST(MergeSiblings, LeavesALayerWithoutBiasBesideOneWith) {
  expect_unchanged(merge_siblings, R"(graph g(%x: f32[n,2]) {
    %v = parameter(name="v", value=f32[1,2] {1, 2}) %y = linear(%x, %v)
    %w = parameter(name="w", value=f32[1,2] {1, 2}) %b = parameter(name="b", value=f32[1] {1})
    %z = linear(%x, %w, %b) return %y, %z })");
}

TEST(MergeSiblings, LeavesGroups) {
  expect_unchanged(merge_siblings, R"(graph g(%x: f32[n,2,5]) {
    %v = parameter(name="v", value=f32[2,1,1] {1, 2}) %w = parameter(name="w", value=f32[2,1,1] {1, 2})
    %0 = conv(%x, %v, groups=2, strides=[1], dilations=[1], pads=[0, 0])
    %1 = conv(%x, %w, groups=2, strides=[1], dilations=[1], pads=[0, 0]) return %0, %1 })");
}

TEST(MergeSiblings, LeavesWhatTakesOtherValues) {
  expect_unchanged(merge_siblings, R"(graph g(%x: f32[n,2], %s: f32[1,2]) {
    %v = parameter(name="v", value=f32[2,2] {1, 2, 3, 4}) %w = parameter(name="w", value=f32[2,2] {1, 2, 3, 4})
    %y = linear(%x, %v) %z = linear(%y, %w) %t = linear(%x, %s) return %y, %z, %t })");
}

TEST(MergeSiblings, LeavesBytesThatTwoShare) {
  expect_unchanged(merge_siblings, R"(graph g(%x: i32[n,2]) {
    %w = constant(value=u8[2,2] {3, 4, 5, 6}) %v = cast(%w, to=i32) %u = cast(%w, to=i32)
    %a = constant(value=i32[] {7}) %0 = sub(%v, %a) %y = matmul(%x, %0)
    %b = constant(value=i32[] {8}) %1 = sub(%u, %b) %z = matmul(%x, %1) return %y, %z })");
}

TEST(MergeSiblings, LeavesWeightsThatOthersUse) {
  const Journal journal = expect_unchanged(merge_siblings, R"(graph g(%x: f32[n,2]) {
    %v = parameter(name="v", value=f32[2,2] {1, 2, 3, 4}) %w = parameter(name="w", value=f32[2,2] {1, 2, 3, 4})
    %y = linear(%x, %v) %z = linear(%x, %w) %t = linear(%z, %w) return %y, %t })");
  EXPECT_EQ(only_remark(journal), "its weights are used elsewhere too, and would be there twice");
}

}  // namespace
}  // namespace tenon
