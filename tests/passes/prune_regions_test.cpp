#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(PruneRegions, MovesSmallConstantsInside) {
  expect_pass(prune_regions, R"(graph g(%c: bool[], %a: f32[2]) {
    %two = constant(value=f32[] {2})
    %0 = if(%c, [%a, %two]) then(%x: f32[2], %t: f32[]) { %1 = mul(%x, %t) return %1 }
      else(%x: f32[2], %t: f32[]) { %1 = exp(%x) return %1 }
    return %0 })",
              R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %t = constant(value=f32[] {2}) %1 = mul(%x, %t) return %1 }
      else(%x: f32[2]) { %1 = exp(%x) return %1 }
    return %0 })");
}

TEST(PruneRegions, DropsWhatIsNotReadOrReadTwice) {
  expect_pass(prune_regions, R"(graph g(%n: i64[], %a: f32[2], %b: f32[2], %d: f32[2]) {
    %0 = while(%n, carried=[%a], captured=[%b, %d, %b]) body(%i: i64[], %x: f32[2], %p: f32[2], %q: f32[2], %r: f32[2]) {
      %go = constant(value=bool[] {1}) %y = add(%x, %p) %z = mul(%y, %r) return %go, %z }
    return %0 })",
              R"(graph g(%n: i64[], %a: f32[2], %b: f32[2], %d: f32[2]) {
    %0 = while(%n, carried=[%a], captured=[%b]) body(%i: i64[], %x: f32[2], %p: f32[2]) {
      %go = constant(value=bool[] {1}) %y = add(%x, %p) %z = mul(%y, %p) return %go, %z }
    return %0 })");
}

// Without %x nothing tells what n is.
TEST(PruneRegions, KeepsWhatTellsASize) {
  const Journal journal = expect_unchanged(prune_regions, R"(graph g(%c: bool[], %a: f32[2], %b: f32[4]) {
    %0 = if(%c, [%a, %b]) then(%x: f32[n], %y: f32[n*n]) { %1 = exp(%y) return %1 }
      else(%x: f32[n], %y: f32[n*n]) { return %y }
    return %0 })");
  EXPECT_EQ(journal.remarks().size(), 1u);
}

TEST(PruneRegions, CapturesWhatALoopNeverChanges) {
  expect_pass(prune_regions, R"(graph g(%n: i64[], %a: f32[2], %b: f32[2]) {
    %0, %1 = while(%n, carried=[%b, %a]) body(%i: i64[], %w: f32[2], %x: f32[2]) {
      %go = constant(value=bool[] {1}) %y = add(%x, %w) return %go, %w, %y }
    return %0, %1 })",
              R"(graph g(%n: i64[], %a: f32[2], %b: f32[2]) {
    %1 = while(%n, carried=[%a], captured=[%b]) body(%i: i64[], %x: f32[2], %w: f32[2]) {
      %go = constant(value=bool[] {1}) %y = add(%x, %w) return %go, %y }
    return %b, %1 })");
}

TEST(PruneRegions, DropsWhatIsCarriedAndCollectedForNobody) {
  expect_pass(prune_regions, R"(graph g(%n: i64[], %a: f32[2], %b: f32[2]) {
    %0, %1, %2 = while(%n, carried=[%b, %a]) body(%i: i64[], %w: f32[2], %x: f32[2]) {
      %go = constant(value=bool[] {1}) %v = exp(%w) %y = neg(%x) return %go, %v, %y, %w }
    return %1 })",
              R"(graph g(%n: i64[], %a: f32[2], %b: f32[2]) {
    %1 = while(%n, carried=[%a]) body(%i: i64[], %x: f32[2]) {
      %go = constant(value=bool[] {1}) %y = neg(%x) return %go, %y }
    return %1 })");
}

TEST(PruneRegions, KeepsWhatTheConditionOrAnotherNeeds) {
  expect_unchanged(prune_regions, R"(graph g(%a: f32[], %b: f32[]) {
    %0, %1 = while(carried=[%b, %a]) body(%i: i64[], %w: f32[], %x: f32[]) {
      %go = less(%w, %x) %v = exp(%w) %y = neg(%x) return %go, %v, %y }
    return %1 })");
}

TEST(PruneRegions, KeepsTheOnlyScannedValue) {
  expect_pass(prune_regions, R"(graph g(%a: f32[3], %s: f32[n,3], %t: f32[3,n]) {
    %0, %1 = scan([%a], [%s, %t], axes=[0, 1], reversed=[1, 0], output_axes=[1], output_reversed=[1])
      body(%x: f32[3], %e: f32[3], %f: f32[3]) { %y = neg(%x) return %y, %y }
    return %0, %1 })",
              R"(graph g(%a: f32[3], %s: f32[n,3], %t: f32[3,n]) {
    %0, %1 = scan([%a], [%t], axes=[1], reversed=[0], output_axes=[1], output_reversed=[1])
      body(%x: f32[3], %f: f32[3]) { %y = neg(%x) return %y, %y }
    return %0, %1 })");
}

TEST(PruneRegions, PassesOnWhatBothBranchesPassOn) {
  expect_pass(prune_regions, R"(graph g(%c: bool[], %a: f32[2]) {
    %0, %1 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) return %x, %1 }
      else(%x: f32[2]) { %1 = exp(%x) return %x, %1 }
    return %0, %1 })",
              R"(graph g(%c: bool[], %a: f32[2]) {
    %1 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) return %1 } else(%x: f32[2]) { %1 = exp(%x) return %1 }
    return %a, %1 })");
}

}  // namespace
}  // namespace tenon
