#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(HoistInvariants, ComputesBeforeALoop) {
  expect_pass(hoist_invariants, R"(graph g(%a: f32[2], %b: f32[2]) {
    %n = constant(value=i64[] {9})
    %0 = while(%n, carried=[%a], captured=[%b]) body(%i: i64[], %x: f32[2], %p: f32[2]) {
      %go = constant(value=bool[] {1}) %two = constant(value=f32[] {2}) %q = mul(%p, %two) %r = exp(%q)
      %y = add(%x, %r) return %go, %y }
    return %0 })",
              R"(graph g(%a: f32[2], %b: f32[2]) {
    %n = constant(value=i64[] {9}) %two = constant(value=f32[] {2}) %q = mul(%b, %two) %r = exp(%q)
    %0 = while(%n, carried=[%a], captured=[%b, %r]) body(%i: i64[], %x: f32[2], %p: f32[2], %s: f32[2]) {
      %go = constant(value=bool[] {1}) %y = add(%x, %s) return %go, %y }
    return %0 })");
}

TEST(HoistInvariants, ComputesBeforeAScan) {
  expect_pass(hoist_invariants, R"(graph g(%a: f32[3], %s: f32[9,3], %b: f32[3]) {
    %0 = scan([%a], [%s], [%b], axes=[0], reversed=[0], output_axes=[], output_reversed=[])
      body(%x: f32[3], %e: f32[3], %p: f32[3]) { %q = exp(%p) %f = add(%e, %q) %y = add(%x, %f) return %y }
    return %0 })",
              R"(graph g(%a: f32[3], %s: f32[9,3], %b: f32[3]) {
    %q = exp(%b)
    %0 = scan([%a], [%s], [%b, %q], axes=[0], reversed=[0], output_axes=[], output_reversed=[])
      body(%x: f32[3], %e: f32[3], %p: f32[3], %q: f32[3]) { %f = add(%e, %q) %y = add(%x, %f) return %y }
    return %0 })");
}

TEST(HoistInvariants, LeavesALoopThatMayHaveNoIterations) {
  const Journal journal = expect_unchanged(hoist_invariants, R"(graph g(%n: i64[], %a: f32[2], %b: f32[2]) {
    %0 = while(%n, carried=[%a], captured=[%b]) body(%i: i64[], %x: f32[2], %p: f32[2]) {
      %go = constant(value=bool[] {1}) %r = exp(%p) %y = add(%x, %r) return %go, %y }
    return %0 })");
  EXPECT_EQ(only_remark(journal), "it may have no iterations, and then none of it would be computed");
}

TEST(HoistInvariants, LeavesWhatChangesOrIsRandom) {
  expect_unchanged(hoist_invariants, R"(graph g(%a: f32[2], %b: i64[1]) {
    %0 = while(carried=[%a], captured=[%b]) body(%i: i64[], %x: f32[2], %p: i64[1]) {
      %go = constant(value=bool[] {1}) %r = random_normal(%p, dtype=f32) %e = exp(%x) %y = add(%e, %r)
      return %go, %y }
    return %0 })");
}

TEST(HoistInvariants, LeavesBytesThatAreWidened) {
  expect_unchanged(hoist_invariants, R"(graph g(%a: u8[1,4], %w: i8[4,4], %z: i8[]) {
    %n = constant(value=i64[] {9})
    %0 = while(%n, carried=[%a], captured=[%w, %z]) body(%i: i64[], %x: u8[1,4], %p: i8[4,4], %q: i8[]) {
      %go = constant(value=bool[] {1}) %l = cast(%x, to=i32) %r = cast(%p, to=i32) %t = cast(%q, to=i32)
      %s = sub(%r, %t) %m = matmul(%l, %s) %y = cast(%m, to=u8) return %go, %y }
    return %0 })");
}

// For products of floats.
TEST(HoistInvariants, HoistsWeightsThatAreDequantized) {
  expect_pass(hoist_invariants, R"(graph g(%a: f32[1,4], %w: i8[4,4], %s: f32[]) {
    %n = constant(value=i64[] {9})
    %0 = while(%n, carried=[%a], captured=[%w, %s]) body(%i: i64[], %x: f32[1,4], %p: i8[4,4], %q: f32[]) {
      %go = constant(value=bool[] {1}) %r = cast(%p, to=f32) %m = mul(%r, %q) %y = matmul(%x, %m)
      return %go, %y }
    return %0 })",
              R"(graph g(%a: f32[1,4], %w: i8[4,4], %s: f32[]) {
    %n = constant(value=i64[] {9}) %r = cast(%w, to=f32) %m = mul(%r, %s)
    %0 = while(%n, carried=[%a], captured=[%w, %s, %m])
      body(%i: i64[], %x: f32[1,4], %p: i8[4,4], %q: f32[], %o: f32[4,4]) {
      %go = constant(value=bool[] {1}) %y = matmul(%x, %o)
      return %go, %y }
    return %0 })");
}

TEST(HoistInvariants, LeavesAModelThatCanNeverRun) {
  const Journal journal = expect_unchanged(hoist_invariants, R"(graph g(%s: f32[3,2], %x: f32[1,4,2]) {
    %0 = scan(scanned=[%s], captured=[%x], axes=[0], reversed=[0], output_axes=[0], output_reversed=[0])
      body(%e: f32[2], %c: f32[1,m,2]) {
        %p = constant(value=f32[1] {1}) %y = batch_norm(%c, %p, %p, %p, %p) %z = add(%y, %e) return %z }
    return %0 })");
  EXPECT_EQ(only_remark(journal), "its body does not fit the sizes it is given");
}

}  // namespace
}  // namespace tenon
