#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(MergeEqual, KeepsOneOfTwo) {
  expect_pass(merge_equal, "graph g(%x: f32[2]) { %0 = exp(%x) %1 = exp(%x) %2 = add(%0, %1) return %2 }",
              "graph g(%x: f32[2]) { %0 = exp(%x) %2 = add(%0, %0) return %2 }");
}

TEST(MergeEqual, LooksAtAttributes) {
  expect_unchanged(
      merge_equal,
      "graph g(%x: f32[2,2]) { %0 = softmax(%x, axis=0) %1 = softmax(%x, axis=1) return %0, %1 }");
}

TEST(MergeEqual, KnowsThatOrderDoesNotMatterForSums) {
  expect_pass(merge_equal,
              "graph g(%x: f32[2], %y: f32[2]) { %0 = add(%x, %y) %1 = add(%y, %x) return %0, %1 }",
              "graph g(%x: f32[2], %y: f32[2]) { %0 = add(%x, %y) return %0, %0 }");
  expect_unchanged(merge_equal,
                   "graph g(%x: f32[2], %y: f32[2]) { %0 = sub(%x, %y) %1 = sub(%y, %x) return %0, %1 }");
}

TEST(MergeEqual, MergesConstantsButNotParameters) {
  expect_pass(
      merge_equal, R"(graph g(%x: f32[2]) {
    %a = constant(value=f32[] {3}) %b = constant(value=f32[] {3}) %0 = add(%x, %a) %1 = mul(%0, %b) return %1 })",
      "graph g(%x: f32[2]) { %a = constant(value=f32[] {3}) %0 = add(%x, %a) %1 = mul(%0, %a) return %1 }");
  expect_unchanged(merge_equal, R"(graph g(%x: f32[2]) {
    %a = parameter(name="a", value=f32[] {3}) %b = parameter(name="b", value=f32[] {3})
    %0 = add(%x, %a) %1 = mul(%0, %b) return %1 })");
}

TEST(MergeEqual, DrawsRandomNumbersTwice) {
  expect_unchanged(merge_equal, R"(graph g() {
    %s = constant(value=i64[1] {2}) %0 = random_normal(%s, dtype=f32) %1 = random_normal(%s, dtype=f32)
    return %0, %1 })");
  expect_unchanged(merge_equal, R"(graph g(%c: bool[], %s: i64[1]) {
    %0 = if(%c, [%s]) then(%n: i64[1]) { %y = random_uniform(%n, dtype=f32) return %y }
      else(%n: i64[1]) { %z = cast(%n, to=f32) return %z }
    %1 = if(%c, [%s]) then(%n: i64[1]) { %y = random_uniform(%n, dtype=f32) return %y }
      else(%n: i64[1]) { %z = cast(%n, to=f32) return %z }
    return %0, %1 })");
}

TEST(MergeEqual, ComparesNestedGraphs) {
  expect_pass(merge_equal, R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) return %1 } else(%x: f32[2]) { return %x }
    %2 = if(%c, [%a]) then(%y: f32[2]) { %3 = neg(%y) return %3 } else(%z: f32[2]) { return %z }
    return %0, %2 })",
              R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) return %1 } else(%x: f32[2]) { return %x }
    return %0, %0 })");
  expect_unchanged(merge_equal, R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) return %1 } else(%x: f32[2]) { return %x }
    %2 = if(%c, [%a]) then(%y: f32[2]) { %3 = exp(%y) return %3 } else(%z: f32[2]) { return %z }
    return %0, %2 })");
}

}  // namespace
}  // namespace tenon
