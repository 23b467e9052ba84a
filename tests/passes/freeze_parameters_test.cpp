#include "passes/expect_pass.h"

namespace tenon {
namespace {

TEST(FreezeParameters, MakesConstantsOfThem) {
  const Journal journal = expect_pass(freeze_parameters, R"(graph g(%a: f32[2]) {
    %w = parameter(name="w", value=f32[2] {1, 2}) %0 = mul(%a, %w) %1 = add(%0, %w) return %1 })",
                                      R"(graph g(%a: f32[2]) {
    %w = constant(value=f32[2] {1, 2}) %0 = mul(%a, %w) %1 = add(%0, %w) return %1 })",
                                      NumericsBudget::Strict);
  EXPECT_EQ(journal.count(), 1);
}

TEST(FreezeParameters, LooksIntoNestedGraphs) {
  expect_pass(freeze_parameters, R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %w = parameter(name="w", value=f32[2] {1, 2}) %y = mul(%x, %w) return %y }
      else(%x: f32[2]) { return %x }
    return %0 })",
              R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %w = constant(value=f32[2] {1, 2}) %y = mul(%x, %w) return %y }
      else(%x: f32[2]) { return %x }
    return %0 })");
}

TEST(FreezeParameters, LeavesInputsAndConstants) {
  expect_unchanged(freeze_parameters,
                   "graph g(%a: f32[2]) { %w = constant(value=f32[2] {1, 2}) %0 = mul(%a, %w) return %0 }");
}

TEST(FreezeParameters, KeepsTheNameThatTheUserKnows) {
  const std::unique_ptr<Graph> graph =
      parse_graph(R"(graph g() { %0 = parameter(name="layer.weight", value=f32[] {1}) return %0 })");
  Journal journal;
  freeze_parameters(*graph, journal);
  EXPECT_EQ(graph->outputs().front().name(), "layer.weight");
}

}  // namespace
}  // namespace tenon
