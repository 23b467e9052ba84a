#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(InlineBranches, TakesTheBranchOfAKnownCondition) {
  expect_pass(inline_branches, R"(graph g(%a: f32[2]) {
    %c = constant(value=bool[] {0})
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) return %1 } else(%x: f32[2]) { %1 = exp(%x) return %1 }
    return %0 })",
              "graph g(%a: f32[2]) { %0 = exp(%a) return %0 }");
}

TEST(InlineBranches, TakesOneOfEqualBranches) {
  expect_pass(inline_branches, R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) return %1 } else(%y: f32[2]) { %1 = neg(%y) return %1 }
    return %0 })",
              "graph g(%c: bool[], %a: f32[2]) { %0 = neg(%a) return %0 }");
}

TEST(InlineBranches, LeavesARealChoice) {
  expect_unchanged(inline_branches, R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) return %1 } else(%x: f32[2]) { %1 = exp(%x) return %1 }
    return %0 })");
}

TEST(InlineBranches, LeavesAConditionThatIsAParameter) {
  expect_unchanged(inline_branches, R"(graph g(%a: f32[2]) {
    %p = parameter(name="p", value=f32[] {1}) %z = constant(value=f32[] {0}) %c = greater(%p, %z)
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) return %1 } else(%x: f32[2]) { %1 = exp(%x) return %1 }
    return %0 })");
}

TEST(InlineBranches, LeavesABranchThatDoesNotFitItsInputs) {
  const Journal journal = expect_unchanged(inline_branches, R"(graph g(%a: f32[3]) {
    %c = constant(value=bool[] {1})
    %0 = if(%c, [%a]) then(%x: f32[n]) { %y = neg(%x) %1 = constant(value=i64[2] {2, -1}) %2 = reshape(%y, %1)
      return %2 }
    else(%x: f32[n]) { %1 = constant(value=i64[2] {2, -1}) %2 = reshape(%x, %1) return %2 }
    return %0 })");
  EXPECT_EQ(
      only_remark(journal),
      "a reshape node: reshape: 3 elements do not divide into [2,-1]\n  x  %y: f32[3]\n  shape: i64[2]");
}

TEST(BindBranches, TellsBranchesTheSizesOfWhatTheyGet) {
  expect_pass(bind_branches, R"(graph g(%c: bool[], %a: f32[2,m], %b: f32[3]) {
    %0, %1 = if(%c, [%a, %b])
      then(%x: f32[n,k], %y: f32[*]) { %u = neg(%x) %v = exp(%y) return %u, %v }
      else(%x: f32[n,k], %y: f32[j]) { %u = exp(%x) %v = neg(%y) return %u, %v }
    return %0, %1 })",
              R"(graph g(%c: bool[], %a: f32[2,m], %b: f32[3]) {
    %0, %1 = if(%c, [%a, %b])
      then(%x: f32[2,k], %y: f32[3]) { %u = neg(%x) %v = exp(%y) return %u, %v }
      else(%x: f32[2,k], %y: f32[3]) { %u = exp(%x) %v = neg(%y) return %u, %v }
    return %0, %1 })");
}

TEST(BindBranches, TellsTheBranchesWithin) {
  expect_pass(bind_branches, R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a, %c])
      then(%x: f32[n], %d: bool[]) {
        %u = neg(%x)
        %v = if(%d, [%u]) then(%y: f32[m]) { %w = exp(%y) return %w } else(%y: f32[m]) { return %y }
        return %v }
      else(%x: f32[n], %d: bool[]) { return %x }
    return %0 })",
              R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a, %c])
      then(%x: f32[2], %d: bool[]) {
        %u = neg(%x)
        %v = if(%d, [%u]) then(%y: f32[2]) { %w = exp(%y) return %w } else(%y: f32[2]) { return %y }
        return %v }
      else(%x: f32[2], %d: bool[]) { return %x }
    return %0 })");
}

TEST(BindBranches, LeavesABranchThatIsNeverTaken) {
  expect_pass(bind_branches, R"(graph g(%c: bool[], %a: f32[3]) {
    %0 = if(%c, [%a])
      then(%x: f32[n]) { %s = constant(value=i64[2] {2, -1}) %1 = reshape(%x, %s)
        %2 = reduce_sum(%1, axes=[0, 1], keep_dims=false) return %2 }
      else(%x: f32[n]) { %s = constant(value=i64[2] {3, -1}) %1 = reshape(%x, %s)
        %2 = reduce_sum(%1, axes=[0, 1], keep_dims=false) return %2 }
    return %0 })",
              R"(graph g(%c: bool[], %a: f32[3]) {
    %0 = if(%c, [%a])
      then(%x: f32[n]) { %s = constant(value=i64[2] {2, -1}) %1 = reshape(%x, %s)
        %2 = reduce_sum(%1, axes=[0, 1], keep_dims=false) return %2 }
      else(%x: f32[3]) { %s = constant(value=i64[2] {3, -1}) %1 = reshape(%x, %s)
        %2 = reduce_sum(%1, axes=[0, 1], keep_dims=false) return %2 }
    return %0 })");
}

TEST(BindBranches, LeavesSizesThatOnlyRunningTells) {
  expect_unchanged(bind_branches, R"(graph g(%c: bool[], %a: f32[m,m]) {
    %0 = if(%c, [%a]) then(%x: f32[n,k]) { %1 = neg(%x) return %1 } else(%x: f32[n,k]) { return %x }
    return %0 })");
}

TEST(UnrollLoops, UnrollsFewIterations) {
  expect_pass(unroll_loops, R"(graph g(%a: f32[2]) {
    %n = constant(value=i64[] {2}) %t = constant(value=bool[] {1})
    %0, %1 = while(%n, %t, [%a]) body(%i: i64[], %x: f32[2]) {
      %go = constant(value=bool[] {1}) %y = neg(%x) return %go, %y, %x }
    return %0, %1 })",
              R"(graph g(%a: f32[2]) {
    %y0 = neg(%a) %y1 = neg(%y0) %a1 = unsqueeze(%a, axes=[0]) %y2 = unsqueeze(%y0, axes=[0])
    %all = concat([%a1, %y2], axis=0) return %y1, %all })");
}

TEST(UnrollLoops, KnowsALoopThatNeverGoesOn) {
  expect_pass(unroll_loops, R"(graph g(%a: f32[2], %n: i64[]) {
    %0 = while(carried=[%a]) body(%i: i64[], %x: f32[2]) {
      %go = constant(value=bool[] {0}) %y = neg(%x) return %go, %y }
    return %0 })",
              "graph g(%a: f32[2], %n: i64[]) { %0 = neg(%a) return %0 }");
}

TEST(UnrollLoops, DropsALoopOfNoIterations) {
  expect_pass(unroll_loops, R"(graph g(%a: f32[2]) {
    %n = constant(value=i64[] {0})
    %0 = while(%n, carried=[%a]) body(%i: i64[], %x: f32[2]) {
      %go = constant(value=bool[] {1}) %y = neg(%x) return %go, %y }
    return %0 })",
              "graph g(%a: f32[2]) { return %a }");
}

TEST(UnrollLoops, ScansFromEitherEnd) {
  expect_pass(unroll_loops, R"(graph g(%a: f32[3], %s: f32[2,3]) {
    %0, %1 = scan([%a], [%s], axes=[0], reversed=[1], output_axes=[0], output_reversed=[1])
      body(%x: f32[3], %e: f32[3]) { %y = add(%x, %e) return %y, %y }
    return %0, %1 })",
              R"(graph g(%a: f32[3], %s: f32[2,3]) {
    %i1 = constant(value=i64[] {1}) %e1 = gather(%s, %i1) %y1 = add(%a, %e1)
    %i0 = constant(value=i64[] {0}) %e0 = gather(%s, %i0) %y0 = add(%y1, %e0)
    %u0 = unsqueeze(%y0, axes=[0]) %u1 = unsqueeze(%y1, axes=[0]) %all = concat([%u0, %u1], axis=0)
    return %y0, %all })");
}

TEST(UnrollLoops, LeavesManyIterations) {
  const Journal journal = expect_unchanged(unroll_loops, R"(graph g(%a: f32[2]) {
    %n = constant(value=i64[] {100})
    %0 = while(%n, carried=[%a]) body(%i: i64[], %x: f32[2]) {
      %go = constant(value=bool[] {1}) %y = neg(%x) return %go, %y }
    return %0 })");
  EXPECT_EQ(only_remark(journal), "it would become 100 nodes");
}

TEST(UnrollLoops, LeavesADynamicTripCount) {
  expect_unchanged(unroll_loops, R"(graph g(%a: f32[2], %n: i64[]) {
    %0 = while(%n, carried=[%a]) body(%i: i64[], %x: f32[2]) {
      %go = constant(value=bool[] {1}) %y = neg(%x) return %go, %y }
    return %0 })");
}

TEST(UnrollLoops, LeavesABodyThatDoesNotFitItsInputs) {
  const Journal journal = expect_unchanged(unroll_loops, R"(graph g(%a: f32[3]) {
    %n = constant(value=i64[] {2})
    %0, %1 = while(%n, carried=[%a]) body(%i: i64[], %x: f32[n]) {
      %go = constant(value=bool[] {1}) %s = constant(value=i64[2] {2, -1}) %y = neg(%x) %z = reshape(%y, %s)
      return %go, %y, %z }
    return %0, %1 })");
  EXPECT_EQ(only_remark(journal),
            "node %z: reshape: 3 elements do not divide into [2,-1]\n  x  %y: f32[3]\n  shape  %s: i64[2]");
}

TEST(UnrollLoops, LeavesALoopIfWhatComesAfterItWouldMakeNoSense) {
  const Journal journal = expect_unchanged(unroll_loops, R"(graph g(%c: bool[], %a: f32[3]) {
    %y = if(%c, [%a]) then(%x: f32[3]) {
      %n = constant(value=i64[] {1})
      %0 = while(%n, captured=[%x]) body(%i: i64[], %z: f32[3]) {
        %go = constant(value=bool[] {0}) %1 = neg(%z) return %go, %1 }
      %s = constant(value=i64[2] {2, -1}) %2 = neg(%0) %3 = reshape(%2, %s) %4 = reduce_sum(%3, axes=[0, 1])
      return %4
    } else(%x: f32[3]) { %5 = reduce_sum(%x, axes=[0]) return %5 }
    return %y })");
  EXPECT_TRUE(only_remark(journal).starts_with("reshape: 3 elements do not divide into [2,-1]"))
      << only_remark(journal);
}

}  // namespace
}  // namespace tenon
