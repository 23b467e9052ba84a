#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(SplitSiblings, MakesOneSplit) {
  expect_pass(split_siblings, R"(graph g(%x: f32[n,6]) {
    %0 = constant(value=i64[1] {0}) %2 = constant(value=i64[1] {2}) %6 = constant(value=i64[1] {6})
    %a = slice(%x, %2, %6, axes=[1]) %b = slice(%x, %0, %2, axes=[1]) return %a, %b })",
              R"(graph g(%x: f32[n,6]) {
    %s = constant(value=i64[2] {2, 4}) %b, %a = split(%x, %s, axis=1) return %a, %b })");
}

TEST(SplitSiblings, LeavesSlicesThatOverlapOrLeaveSomethingOut) {
  expect_unchanged(split_siblings, R"(graph g(%x: f32[n,6]) {
    %0 = constant(value=i64[1] {0}) %2 = constant(value=i64[1] {2}) %3 = constant(value=i64[1] {3})
    %6 = constant(value=i64[1] {6})
    %a = slice(%x, %2, %6, axes=[1]) %b = slice(%x, %0, %3, axes=[1]) return %a, %b })");
  expect_unchanged(split_siblings, R"(graph g(%x: f32[n,6]) {
    %0 = constant(value=i64[1] {0}) %2 = constant(value=i64[1] {2}) %3 = constant(value=i64[1] {3})
    %6 = constant(value=i64[1] {6})
    %a = slice(%x, %3, %6, axes=[1]) %b = slice(%x, %0, %2, axes=[1]) return %a, %b })");
}

TEST(SplitSiblings, LeavesSlicesInSteps) {
  expect_unchanged(split_siblings, R"(graph g(%x: f32[6]) {
    %0 = constant(value=i64[1] {0}) %1 = constant(value=i64[1] {1}) %2 = constant(value=i64[1] {2})
    %6 = constant(value=i64[1] {6})
    %a = slice(%x, %0, %6, %2, axes=[0]) %b = slice(%x, %1, %6, %2, axes=[0]) return %a, %b })");
}

TEST(SplitSiblings, AppliesAFunctionOfAllPartsBefore) {
  expect_pass(split_siblings, R"(graph g(%x: f32[n,6]) {
    %s = constant(value=i64[2] {2, 4}) %a, %b = split(%x, %s, axis=1) %c = constant(value=f32[] {2})
    %0 = max(%c, %b) %1 = max(%c, %a) return %0, %1 })",
              R"(graph g(%x: f32[n,6]) {
    %s = constant(value=i64[2] {2, 4}) %c = constant(value=f32[] {2}) %0 = max(%c, %x)
    %a, %b = split(%0, %s, axis=1) return %b, %a })");
}

TEST(SplitSiblings, LeavesFunctionsOfSomePartsAndOfPartsThatAreUsedElsewhere) {
  expect_unchanged(split_siblings, R"(graph g(%x: f32[n,6]) {
    %s = constant(value=i64[2] {2, 4}) %a, %b = split(%x, %s, axis=1) %0 = relu(%a) return %0, %b })");
  expect_unchanged(split_siblings, R"(graph g(%x: f32[n,6]) {
    %s = constant(value=i64[2] {2, 4}) %a, %b = split(%x, %s, axis=1) %0 = relu(%a) %1 = relu(%b)
    return %0, %1, %b })");
  expect_unchanged(split_siblings, R"(graph g(%x: f32[n,6]) {
    %s = constant(value=i64[2] {2, 4}) %a, %b = split(%x, %s, axis=1) %0 = elu(%a, alpha=2.0) %1 = elu(%b)
    return %0, %1 })");
  expect_unchanged(split_siblings, R"(graph g(%x: f32[n,6], %c: f32[n,1]) {
    %s = constant(value=i64[2] {2, 4}) %a, %b = split(%x, %s, axis=1) %0 = max(%a, %c) %1 = max(%b, %c)
    return %0, %1 })");
}

}  // namespace
}  // namespace tenon
