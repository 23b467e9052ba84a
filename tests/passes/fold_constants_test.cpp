#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(FoldConstants, ComputesWhatHasASizeOnlyOnceItIsComputed) {
  expect_pass(fold_constants, R"(graph g(%x: f32[2,3,4]) {
    %c = constant(value=bool[2,3] {1, 0, 1, 0, 0, 1}) %0 = nonzero(%c)
    %1 = transpose(%0, permutation=[1, 0]) %y = gather_nd(%x, %1) return %y })",
              R"(graph g(%x: f32[2,3,4]) {
    %0 = constant(value=i64[3,2] {0, 0, 0, 2, 1, 2}) %y = gather_nd(%x, %0) return %y })");
}

TEST(FoldConstants, ComputesWhatDependsOnConstantsAlone) {
  expect_pass(fold_constants, R"(graph g(%x: f32[2]) {
    %a = constant(value=f32[2] {1, 2}) %b = constant(value=f32[] {3}) %c = mul(%a, %b) %y = add(%x, %c)
    return %y })",
              R"(graph g(%x: f32[2]) { %c = constant(value=f32[2] {3, 6}) %y = add(%x, %c) return %y })");
}

TEST(FoldConstants, KnowsShapes) {
  expect_pass(fold_constants, "graph g(%x: f32[n,3]) { %s = shape(%x) return %s }",
              "graph g(%x: f32[n,3]) { %s = shape(%x) return %s }");
  expect_pass(fold_constants, "graph g(%x: f32[2,3]) { %s = shape(%x) return %s }",
              "graph g(%x: f32[2,3]) { %s = constant(value=i64[2] {2, 3}) return %s }");
  expect_pass(fold_constants, R"(graph g(%x: f32[n,3]) {
    %s = shape(%x) %i = constant(value=i64[] {1}) %d = gather(%s, %i) return %d })",
              "graph g(%x: f32[n,3]) { %d = constant(value=i64[] {3}) return %d }");
}

std::string folded(std::string_view text) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  Journal journal;
  fold_constants(*graph, journal);
  return print(*graph);
}

TEST(FoldConstants, CallsWhatItComputesAsTheConstantItIsMadeOf) {
  EXPECT_EQ(folded(R"(graph g(%x: f32[2,1]) {
    %w = constant(value=f32[2] {1, 2}) %b = constant(value=f32[] {3}) %0 = mul(%b, %w)
    %1 = unsqueeze(%0, axes=[1]) %y = add(%x, %1) return %y })"),
            R"(graph g(%x: f32[2,1]) {
  %w: f32[2,1] = constant(value=f32[2,1] {3, 6})
  %y: f32[2,1] = add(%x, %w)
  return %y
}
)");
}

TEST(FoldConstants, LeavesAConstantThatStaysItsName) {
  EXPECT_EQ(folded(R"(graph g(%x: f32[2]) {
    %w = constant(value=f32[2] {1, 2}) %0 = neg(%w) %y = add(%x, %0) return %y, %w })"),
            R"(graph g(%x: f32[2]) {
  %w: f32[2] = constant(value=f32[2] {1, 2})
  %0: f32[2] = constant(value=f32[2] {-1, -2})
  %y: f32[2] = add(%x, %0)
  return %y, %w
}
)");
}

// Only running tells that there is nothing to squeeze.
TEST(FoldConstants, LeavesWhatHasNoValue) {
  expect_unchanged(fold_constants,
                   "graph g(%x: i64[n,0], %axes: i64[2]) { %y = squeeze(%x, axes=%axes) return %y }");
}

TEST(FoldConstants, KeepsSplatsLazy) {
  expect_pass(fold_constants, R"(graph g() {
    %a = constant(value=f32[1000000,1000] splat 2) %b = constant(value=f32[] splat 3) %c = mul(%a, %b)
    %d = transpose(%c, permutation=[1, 0]) return %d })",
              "graph g() { %c = constant(value=f32[1000,1000000] splat 6) return %c }");
}

TEST(FoldConstants, MakesASplatOfEqualElements) {
  expect_pass(fold_constants, R"(graph g() {
    %a = constant(value=f32[2] {1, 3}) %b = constant(value=f32[2] {3, 1}) %c = add(%a, %b) return %c })",
              "graph g() { %c = constant(value=f32[2] splat 4) return %c }");
}

TEST(FoldConstants, DoesNotBlowAModelUp) {
  const Journal journal = expect_unchanged(fold_constants, R"(graph g() {
    %a = constant(value=f32[2,1] {1, 2}) %s = constant(value=i64[2] {2, 1000000000}) %y = broadcast(%a, %s)
    return %y })");
  EXPECT_EQ(only_remark(journal), "its value takes 8000000000 bytes");
}

TEST(FoldConstants, LeavesWeightsWhereTheyAre) {
  const Journal journal = expect_unchanged(fold_constants, R"(graph g() {
    %w = constant(value=i64[10000] iota 0 1) %y = neg(%w) return %y })");
  EXPECT_TRUE(journal.remarks().empty());
}

TEST(FoldConstants, LeavesParametersToTheirGradients) {
  expect_unchanged(fold_constants, R"(graph g(%x: f32[2]) {
    %p = parameter(name="p", value=f32[2] {1, 2}) %q = neg(%p) %y = add(%x, %q) return %y })");
}

TEST(FoldConstants, LeavesRandomNumbersAlone) {
  expect_unchanged(fold_constants, R"(graph g() {
    %s = constant(value=i64[1] {2}) %y = random_normal(%s, dtype=f32) return %y })");
}

TEST(FoldConstants, LeavesWhatCannotBeComputedToFailWhenItRuns) {
  expect_unchanged(fold_constants, R"(graph g() {
    %x = constant(value=f32[2000] splat 1) %i = constant(value=i64[] {5000}) %y = gather(%x, %i) return %y })");
}

TEST(FoldConstants, LeavesSplatsThatCannotBeComputedWith) {
  const Journal journal = expect_unchanged(fold_constants, R"(graph g() {
    %1 = constant(value=i32[9] splat 1) %0 = constant(value=i32[9] splat 0) %y = div(%1, %0) return %y })");
  EXPECT_EQ(only_remark(journal), "it cannot be computed: node %y: div: an integer is divided by zero");
}

TEST(FoldConstants, WorksInNestedGraphs) {
  expect_pass(fold_constants, R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a])
      then(%x: f32[2]) { %k = constant(value=f32[] {1}) %m = neg(%k) %1 = add(%x, %m) return %1 }
      else(%x: f32[2]) { return %x }
    return %0 })",
              R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a])
      then(%x: f32[2]) { %m = constant(value=f32[] {-1}) %1 = add(%x, %m) return %1 }
      else(%x: f32[2]) { return %x }
    return %0 })");
}

TEST(FoldConstants, LeavesQuantisedWeights) {
  expect_unchanged(fold_constants, R"(graph g(%x: f32[n,2]) {
    %q = constant(value=i8[1,2] {1, 2}) %s = constant(value=f32[] {0.5}) %w = dequantize(%q, %s, to=f32)
    %y = linear(%x, %w) return %y })");
}

TEST(FoldConstants, LeavesQuantisedWeightsOfProductsOfIntegers) {
  expect_unchanged(fold_constants, R"(graph g(%x: i32[n,2]) {
    %q = constant(value=u8[2,1] {1, 255}) %w = cast(%q, to=i32) %y = matmul(%x, %w) return %y })");
  expect_pass(fold_constants,
              "graph g() { %q = constant(value=u8[1] {255}) %y = cast(%q, to=i32) return %y }",
              "graph g() { %y = constant(value=i32[1] {255}) return %y }");
}

// A table of 80,000 bytes, and what is computed of it.
std::string with_table(std::string_view rest) {
  std::string numbers = "0";
  for (int i = 1; i < 20000; ++i)
    numbers += fmt::format(", {}", i % 100);
  return fmt::format("graph g() {{ %t = constant(value=f32[2000,10] {{{}}}) {} return %y }}", numbers, rest);
}

TEST(FoldConstants, TakesAFewRowsOfALargeTable) {
  expect_pass(
      fold_constants, with_table("%i = constant(value=i64[1] {12}) %y = gather(%t, %i)"),
      "graph g() { %y = constant(value=f32[1,10] {20, 21, 22, 23, 24, 25, 26, 27, 28, 29}) return %y }");
}

TEST(FoldConstants, LeavesWhatReadsALargeTable) {
  expect_unchanged(fold_constants, with_table("%y = reduce_sum(%t, axes=[0])"));
  expect_unchanged(fold_constants, with_table("%y = transpose(%t, permutation=[1, 0])"));
}

}  // namespace
}  // namespace tenon
