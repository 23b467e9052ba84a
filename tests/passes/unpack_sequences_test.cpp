#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(UnpackSequences, TakesWhatWasPutIn) {
  expect_pass(unpack_sequences, R"(graph g(%x: f32[2], %y: f32[2]) {
    %0 = constant(value=i64[] {0}) %1 = constant(value=i64[] {-1}) %e = sequence_empty(element=f32[2])
    %a = sequence_insert(%e, %x) %b = sequence_insert(%a, %y, %0) %c = sequence_at(%b, %1)
    %d = sequence_erase(%b, %0) %f = sequence_at(%d, %0) %n = sequence_length(%b) %g = exp(%c)
    return %g, %f, %n })",
              R"(graph g(%x: f32[2], %y: f32[2]) {
    %n = constant(value=i64[] {2}) %g = exp(%x) return %g, %x, %n })");
}

TEST(UnpackSequences, PutsElementsTogether) {
  expect_pass(unpack_sequences, R"(graph g(%x: f32[2,n], %y: f32[2,n]) {
    %s = sequence_construct([%x, %y]) %a = sequence_concat(%s, axis=-1)
    %b = sequence_concat(%s, axis=-1, new_axis=true) return %a, %b })",
              R"(graph g(%x: f32[2,n], %y: f32[2,n]) {
    %a = concat([%x, %y], axis=1) %0 = unsqueeze(%x, axes=[2]) %1 = unsqueeze(%y, axes=[2])
    %b = concat([%0, %1], axis=2) return %a, %b })");
}

TEST(UnpackSequences, SplitsATensorOnce) {
  expect_pass(unpack_sequences, R"(graph g(%x: f32[5,n]) {
    %2 = constant(value=i64[] {2}) %1 = constant(value=i64[] {1}) %s = sequence_split(%x, %2, axis=-2)
    %a = sequence_at(%s, %2) %b = sequence_at(%s, %1) return %a, %b })",
              R"(graph g(%x: f32[5,n]) {
    %s = constant(value=i64[3] {2, 2, 1}) %0, %b, %a = split(%x, %s, axis=0) return %a, %b })");
  expect_pass(unpack_sequences, R"(graph g(%x: f32[2,n]) {
    %1 = constant(value=i64[] {1}) %s = sequence_split(%x, keep_dims=false) %a = sequence_at(%s, %1) return %a })",
              R"(graph g(%x: f32[2,n]) {
    %s = constant(value=i64[2] {1, 1}) %0, %1 = split(%x, %s, axis=0) %a = squeeze(%1, axes=[0]) return %a })");
}

TEST(UnpackSequences, OpensOptionals) {
  expect_pass(unpack_sequences, R"(graph g(%x: f32[n]) {
    %o = optional(%x) %e = optional_empty(element=f32[n]) %a = optional_get(%o) %b = optional_has(%o)
    %c = optional_has(%e) return %a, %b, %c })",
              R"(graph g(%x: f32[n]) {
    %b = constant(value=bool[] {1}) %c = constant(value=bool[] {0}) return %x, %b, %c })");
}

TEST(UnpackSequences, LeavesWhatOnlyRunningTells) {
  expect_unchanged(unpack_sequences, R"(graph g(%x: f32[n], %y: f32[n], %i: i64[]) {
    %s = sequence_construct([%x, %y]) %a = sequence_at(%s, %i) return %a })");
  expect_unchanged(unpack_sequences, R"(graph g(%x: f32[n]) {
    %2 = constant(value=i64[] {2}) %s = sequence_split(%x, %2) %a = sequence_at(%s, %2) return %a })");
  expect_unchanged(unpack_sequences, R"(graph g(%x: f32[n]) {
    %2 = constant(value=i64[] {2}) %s = sequence_construct([%x]) %a = sequence_at(%s, %2) return %a })");
  expect_unchanged(unpack_sequences, R"(graph g(%x: f32[2,n], %i: i64[]) {
    %s = sequence_split(%x, keep_dims=false) %a = sequence_at(%s, %i) return %a })");
  expect_unchanged(unpack_sequences, R"(graph g(%x: f32[n]) {
    %e = optional_empty(element=f32[n]) %a = optional_get(%e) return %a })");
}

}  // namespace
}  // namespace tenon
