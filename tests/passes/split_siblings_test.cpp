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

}  // namespace
}  // namespace tenon
