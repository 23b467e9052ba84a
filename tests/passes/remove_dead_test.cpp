#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(RemoveDead, ErasesWhatNothingUses) {
  const Journal journal = expect_pass(remove_dead, R"(graph g(%a: f32[2], %b: f32[2]) {
    %w = parameter(name="w", value=f32[2] {1, 2}) %0 = mul(%b, %w) %1 = exp(%0) %2 = neg(%a) return %2 })",
                                      "graph g(%a: f32[2], %b: f32[2]) { %2 = neg(%a) return %2 }");
  EXPECT_EQ(journal.count(), 3);
}

TEST(RemoveDead, LooksIntoNestedGraphs) {
  expect_pass(remove_dead, R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %d = exp(%x) %y = neg(%x) return %y } else(%x: f32[2]) { return %x }
    return %0 })",
              R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %y = neg(%x) return %y } else(%x: f32[2]) { return %x }
    return %0 })");
}

TEST(RemoveDead, LeavesANodeOfWhichOneResultIsUsed) {
  expect_unchanged(
      remove_dead,
      "graph g(%a: f32[4]) { %s = constant(value=i64[2] {2, 2}) %0, %1 = split(%a, %s, axis=0) return %1 }");
}

// What comes after them would draw other numbers.
TEST(RemoveDead, LeavesWhatTakesARandomCall) {
  expect_unchanged(remove_dead, R"(graph g(%s: i64[1]) {
    %0 = random_normal(%s, dtype=f32) %1 = random_normal(%s, dtype=f32) return %1 })");
  expect_unchanged(remove_dead, R"(graph g(%c: bool[], %s: i64[1]) {
    %0 = if(%c, [%s]) then(%n: i64[1]) { %y = random_uniform(%n, dtype=f32) return %y }
        else(%n: i64[1]) { %y = cast(%n, to=f32) return %y }
    return %s })");
  expect_pass(remove_dead, "graph g(%s: i64[1]) { %0 = random_normal(%s, dtype=f32, seed=1) return %s }",
              "graph g(%s: i64[1]) { return %s }");
}

TEST(RemoveDead, StopsWhereTheJournalCloses) {
  const auto graph = parse_graph("graph g(%a: f32[2]) { %0 = exp(%a) %1 = neg(%0) return %a }");
  Journal journal(NumericsBudget::Default, 1);
  remove_dead(*graph, journal);
  EXPECT_EQ(difference(*graph, *parse_graph("graph g(%a: f32[2]) { %0 = exp(%a) return %a }")), "");
}

}  // namespace
}  // namespace tenon
