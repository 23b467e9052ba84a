#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(MoveTransposes, CancelsThemAroundANormalisation) {
  expect_pass(move_transposes, R"(graph g(%x: f32[2,8,5,6]) {
    %s = parameter(name="s", value=f32[8] splat 2)
    %0 = transpose(%x, permutation=[0, 2, 3, 1])
    %1 = reduce_mean(%0, axes=[3], keep_dims=true)
    %2 = sub(%0, %1)
    %3 = mul(%2, %s)
    %4 = transpose(%3, permutation=[0, 3, 1, 2])
    return %4 })",
              R"(graph g(%x: f32[2,8,5,6]) {
    %s = parameter(name="s", value=f32[8] splat 2)
    %1 = reduce_mean(%x, axes=[1], keep_dims=true)
    %2 = sub(%x, %1)
    %t = unsqueeze(%s, axes=[0, 2, 3])
    %3 = mul(%2, %t)
    %4 = transpose(%3, permutation=[0, 2, 3, 1])
    %5 = transpose(%4, permutation=[0, 3, 1, 2])
    return %5 })");
}

TEST(MoveTransposes, MakesOneOfSeveral) {
  expect_pass(move_transposes, R"(graph g(%x: f32[n,8,5], %y: f32[n,8,5]) {
    %0 = transpose(%x, permutation=[0, 2, 1])
    %1 = transpose(%y, permutation=[0, 2, 1])
    %2 = concat([%0, %1], axis=-1)
    %3 = softmax(%2, axis=1)
    return %3 })",
              R"(graph g(%x: f32[n,8,5], %y: f32[n,8,5]) {
    %2 = concat([%x, %y], axis=1)
    %3 = softmax(%2, axis=2)
    %4 = transpose(%3, permutation=[0, 2, 1])
    return %4 })");
}

TEST(MoveTransposes, BringsThemToProductsThatTakeThem) {
  expect_pass(move_transposes, R"(graph g(%x: f32[4,8], %y: f32[4,6]) {
    %0 = transpose(%x, permutation=[1, 0]) %1 = relu(%0) %2 = matmul(%1, %y) return %2 })",
              R"(graph g(%x: f32[4,8], %y: f32[4,6]) {
    %1 = relu(%x) %0 = transpose(%1, permutation=[1, 0]) %2 = matmul(%0, %y) return %2 })");
}

TEST(MoveTransposes, LeavesPartsBehindThatDoNotProfit) {
  expect_pass(move_transposes, R"(graph g(%x: f32[4,8], %y: f32[8,4]) {
    %0 = transpose(%x, permutation=[1, 0]) %1 = relu(%0) %2 = transpose(%1, permutation=[1, 0])
    %3 = exp(%0) %4 = add(%0, %y) return %2, %3, %4 })",
              R"(graph g(%x: f32[4,8], %y: f32[8,4]) {
    %0 = transpose(%x, permutation=[1, 0]) %a = relu(%x) %1 = transpose(%a, permutation=[1, 0])
    %2 = transpose(%1, permutation=[1, 0]) %3 = exp(%0) %4 = add(%0, %y) return %2, %3, %4 })");
}

TEST(MoveTransposes, LeavesThoseThatWouldOnlyChangePlaces) {
  expect_unchanged(move_transposes, R"(graph g(%x: f32[4,8]) {
    %0 = transpose(%x, permutation=[1, 0]) %1 = relu(%0) return %1 })");
  // The sum would need a transpose of y.
  expect_unchanged(move_transposes, R"(graph g(%x: f32[4,8], %y: f32[8,4]) {
    %0 = transpose(%x, permutation=[1, 0]) %1 = add(%0, %y) %2 = transpose(%1, permutation=[1, 0]) return %2 })");
}

TEST(MoveTransposes, LeavesReductionsThatWouldAddUpInAnotherOrder) {
  expect_unchanged(move_transposes, R"(graph g(%x: f32[4,8,5]) {
    %0 = transpose(%x, permutation=[1, 0, 2]) %1 = reduce_sum(%0, axes=[0, 1], keep_dims=true)
    %2 = transpose(%1, permutation=[1, 0, 2]) return %2 })");
}

}  // namespace
}  // namespace tenon
