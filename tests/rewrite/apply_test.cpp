#include "rewrite/apply.h"

#include "ir/graph_text.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/unary.h"
#include "rewrite/cut.h"
#include "rewrite/prove.h"

namespace tenon {
namespace {

const Pattern x = any("x"), y = any("y");

Rule rule(std::string_view name, const Pattern& match, const Replacement& replace,
          std::vector<Condition> when = {}) {
  return {.name = name,
          .match = match,
          .replace = replace,
          .when = std::move(when),
          .numerics = Numerics::BitExact,
          .fires = "",
          .stays = ""};
}

void expect_graph(const Graph& graph, std::string_view expected) {
  EXPECT_EQ(lint(graph), std::vector<std::string>());
  EXPECT_EQ(difference(graph, *parse_graph(expected)), "") << print(graph);
}

TEST(ApplyRules, RewritesWhatEarlierRewritesMade) {
  const auto graph =
      parse_graph("graph g(%a: f32[2]) { %0 = neg(%a) %1 = neg(%0) %2 = neg(%1) %3 = neg(%2) return %3 }");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph, {rule("twice", -(-x), x)}, journal), 2);
  expect_graph(*graph, "graph g(%a: f32[2]) { return %a }");
}

TEST(ApplyRules, LeavesWhatOthersUse) {
  const auto graph =
      parse_graph("graph g(%a: f32[2]) { %0 = exp(%a) %1 = neg(%0) %2 = neg(%1) return %2, %1 }");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph, {rule("twice", -(-x), x)}, journal), 1);
  expect_graph(*graph, "graph g(%a: f32[2]) { %0 = exp(%a) %1 = neg(%0) return %0, %1 }");
}

TEST(ApplyRules, ErasesWhatSeveralErasedNodesUsed) {
  const auto graph = parse_graph(R"(graph g(%a: f32[2]) {
    %0 = exp(%a) %1 = neg(%0) %2 = abs(%0) %3 = add(%1, %2) %4 = sub(%3, %0) %5 = relu(%4) return %5 })");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph,
                        {rule("lose", unary("relu", x),
                              {"the input", [](const Match& m) { return m.root().graph().input(0); }})},
                        journal),
            1);
  expect_graph(*graph, "graph g(%a: f32[2]) { return %a }");
}

TEST(ApplyRules, DeclinesWhatWouldChangeTheType) {
  const auto graph = parse_graph(
      R"(graph g(%a: f32[3]) { %1 = constant(value=f32[2,1] {1, 1}) %y = mul(%a, %1) from "scale" return %y })");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph, {rule("one", x * 1.0, x)}, journal), 0);
  ASSERT_EQ(journal.remarks().size(), 1u);
  EXPECT_EQ(journal.remarks().begin()->node, "node \"scale\"");
  EXPECT_EQ(journal.remarks().begin()->reason, "the result would be f32[3], not f32[2,3]");
}

TEST(ApplyRules, DeclinesWhatTheGateRefuses) {
  constexpr std::string_view text = "graph g(%a: f32[3]) { %y = exp(%a) return %y }";
  const auto graph = parse_graph(text);
  Journal journal;
  const Replacement refused = {"x under another shape", [](const Match& m) {
                                 return reshape(-m.root().node()->in("x"), {2, -1});
                               }};
  EXPECT_EQ(apply_rules(*graph, {rule("view", unary("exp", x), refused)}, journal), 0);
  ASSERT_EQ(journal.remarks().size(), 1u);
  EXPECT_EQ(journal.remarks().begin()->reason,
            "reshape: 3 elements do not divide into [2,-1]\n  x: f32[3]\n  shape: i64[2]");
  expect_graph(*graph, text);
}

TEST(ApplyRules, RemarksOnTheConditionThatFailed) {
  const auto graph = parse_graph("graph g(%a: f32[3]) { %y = sub(%a, %a) return %y }");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph,
                        {rule("zero", x - x, x, {{"x is small", [](const Match&) { return false; }, true}})},
                        journal),
            0);
  ASSERT_EQ(journal.remarks().size(), 1u);
  EXPECT_EQ(journal.remarks().begin()->reason, "unmet condition: x is small");
}

TEST(ApplyRules, KeepsTheSourcesOfAllItReplaces) {
  const auto graph = parse_graph(
      R"(graph g(%a: f32[3]) { %0 = neg(%a) from "first" %1 = exp(%0) from "second" return %1 })");
  Journal journal;
  apply_rules(*graph, {rule("swap", unary("exp", -x), unary("reciprocal", unary("exp", x)))}, journal);
  for (const Node* node : graph->nodes())
    EXPECT_EQ(node->sources(), (std::vector<std::string>{"second", "first"}));
  ASSERT_EQ(journal.applications().size(), 1u);
  EXPECT_EQ(journal.applications().front().number, 1);
  EXPECT_EQ(journal.applications().front().nodes, (std::vector<std::string>{"second", "first"}));
}

TEST(ApplyRules, ReplacesEveryResultOfANode) {
  const auto graph = parse_graph(R"(graph g(%a: f32[4]) {
    %s = constant(value=i64[2] {2, 2}) %0, %1 = split(%a, %s, axis=0) return %0, %1 })");
  const Pattern part = result_of("split");
  const Replacement again = {"slice(x)", [](const Match& m) {
                               return slice(m.root().node()->in("x"), 0, 2 * m.root().index(),
                                            2 * m.root().index() + 2);
                             }};
  Journal journal;
  EXPECT_EQ(apply_rules(*graph, {rule("slice", part, again)}, journal), 2);
}

// Two slices that together are all of x.
Rule two_slices() {
  const auto part = [](std::string_view name) {
    return op("slice", {{"x", x}, {"starts", any(name)}, {"ends", any(name)}});
  };
  const Pattern first = part("first"), second = part("second");
  const Condition complete = {"the second begins where the first ends", [=](const Match& m) {
                                const auto a = known_cuts(m.node(first)), b = known_cuts(m.node(second));
                                return a && b && a->size() == 1 && b->size() == 1 &&
                                       a->front().axis == b->front().axis && a->front().start == 0 &&
                                       a->front().end == b->front().start;
                              }};
  const Replacement halves = {"split(x)", [=](const Match& m) {
                                const Cut cut = known_cuts(m.node(first))->front();
                                const int64_t size = *m[x].dim(cut.axis).constant();
                                return split(m[x], {cut.end, size - cut.end}, cut.axis);
                              }};
  return {.name = "two-slices",
          .match = together({first, second}),
          .replace = halves,
          .when = {complete},
          .numerics = Numerics::BitExact,
          .fires =
              "(%x: T[n,5]) { %0 = constant(value=i64[1] {0}) %2 = constant(value=i64[1] {2}) "
              "%5 = constant(value=i64[1] {5}) %a = slice(%x, %0, %2, axes=[1]) "
              "%b = slice(%x, %2, %5, axes=[1]) return %b, %a }",
          .stays =
              "(%x: T[n,5]) { %0 = constant(value=i64[1] {0}) %2 = constant(value=i64[1] {2}) "
              "%5 = constant(value=i64[1] {5}) %a = slice(%x, %0, %2, axes=[1]) "
              "%b = slice(%x, %0, %5, axes=[1]) return %b, %a }"};
}

TEST(ApplyRules, ReplacesSeveralResultsAtOnce) {
  prove(two_slices());
  const auto graph = parse_graph(R"(graph g(%x: f32[5]) {
    %0 = constant(value=i64[1] {0}) %2 = constant(value=i64[1] {2}) %5 = constant(value=i64[1] {5})
    %b = slice(%x, %2, %5, axes=[0]) from "upper" %a = slice(%x, %0, %2, axes=[0]) from "lower"
    return %b, %a })");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph, {two_slices()}, journal), 1);
  expect_graph(*graph, R"(graph g(%x: f32[5]) {
    %s = constant(value=i64[2] {2, 3}) %a, %b = split(%x, %s, axis=0) return %b, %a })");
  EXPECT_EQ(journal.applications().front().nodes, (std::vector<std::string>{"upper", "lower"}));
  EXPECT_EQ(two_slices().to_string(),
            "slice(x, first, first), slice(x, second, second) => split(x) if the second begins where the "
            "first ends");
}

// Two results that share x.
const Pattern sine = unary("sin", x);
const Rule sine_and_product = rule("both", together({sine, (x * y)}), together({unary("cos", x), x - y}));

TEST(ApplyRules, MovesUsersBehindWhatReplacesSeveralResults) {
  const auto graph = parse_graph(R"(graph g(%x: f32[2], %z: f32[2]) {
    %s = sin(%x) %u = neg(%s) %v = abs(%u) %w = log(%z) %y = exp(%z) %p = mul(%x, %y)
    return %v, %p, %w })");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph, {sine_and_product}, journal), 1);
  expect_graph(*graph, R"(graph g(%x: f32[2], %z: f32[2]) {
    %w = log(%z) %y = exp(%z) %s = cos(%x) %p = sub(%x, %y) %u = neg(%s) %v = abs(%u)
    return %v, %p, %w })");
}

TEST(ApplyRules, MakesNoCycle) {
  for (const std::string_view text : {
           // y is made of the sine.
           "graph g(%x: f32[2]) { %s = sin(%x) %y = neg(%s) %p = mul(%x, %y) return %s, %p }",
           "graph g(%x: f32[2]) { %s = sin(%x) %t = exp(%s) %y = neg(%t) %p = mul(%x, %y) return %s, %p }",
       }) {
    const auto graph = parse_graph(text);
    Journal journal;
    EXPECT_EQ(apply_rules(*graph, {sine_and_product}, journal), 0);
    ASSERT_EQ(journal.remarks().size(), 2u);  // one for each end
    EXPECT_EQ(journal.remarks().begin()->reason,
              "unmet condition: no result depends on another by way of what stays");
    expect_graph(*graph, text);
  }
}

TEST(ApplyRules, TakesTheOneOfSeveralResultsThatMakesNoCycle) {
  const auto graph = parse_graph(R"(graph g(%x: f32[2], %z: f32[2]) {
    %s = sin(%x) %y = neg(%s) %p = mul(%x, %y) %q = mul(%x, %z) return %s, %p, %q })");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph, {sine_and_product}, journal), 1);
  expect_graph(*graph, R"(graph g(%x: f32[2], %z: f32[2]) {
    %s = cos(%x) %q = sub(%x, %z) %y = neg(%s) %p = mul(%x, %y) return %s, %p, %q })");
}

TEST(ApplyRules, KeepsTheOrderWhereAResultIsMadeOfAnother) {
  const Pattern inner = -sine;
  const Rule nested =
      rule("nested", together({sine, unary("exp", inner)}), together({unary("cos", x), unary("log", x)}));
  const auto graph = parse_graph(
      "graph g(%x: f32[2]) { %s = sin(%x) %u = abs(%s) %n = neg(%s) %e = exp(%n) return %u, %e }");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph, {nested}, journal), 1);
  expect_graph(*graph, "graph g(%x: f32[2]) { %s = cos(%x) %e = log(%x) %u = abs(%s) return %u, %e }");

  // What lies between them stays, so the second result would depend on the first, which comes with it.
  constexpr std::string_view shared =
      "graph g(%x: f32[2]) { %s = sin(%x) %n = neg(%s) %e = exp(%n) return %s, %n, %e }";
  const auto declined = parse_graph(shared);
  EXPECT_EQ(apply_rules(*declined, {nested}, journal), 0);
  expect_graph(*declined, shared);
}

TEST(ApplyRules, WorksInNestedGraphs) {
  const auto graph = parse_graph(R"(graph g(%c: bool[], %a: f32[2]) {
    %0 = if(%c, [%a]) then(%x: f32[2]) { %1 = neg(%x) %2 = neg(%1) return %2 } else(%x: f32[2]) { return %x }
    return %0 })");
  Journal journal;
  EXPECT_EQ(apply_rules(*graph, {rule("twice", -(-x), x)}, journal), 1);
}

TEST(ApplyRules, StopsAfterAsManyAsAreAskedFor) {
  const auto graph =
      parse_graph("graph g(%a: f32[2]) { %0 = neg(%a) %1 = neg(%0) %2 = neg(%1) %3 = neg(%2) return %3 }");
  Journal journal(NumericsBudget::Default, 1);
  EXPECT_EQ(apply_rules(*graph, {rule("twice", -(-x), x)}, journal), 1);
}

TEST(ApplyRules, FindsRulesThatUndoEachOther) {
  const auto graph = parse_graph("graph g(%a: f32[2], %b: f32[2]) { %0 = add(%a, %b) return %0 }");
  Journal journal;
  EXPECT_THROW(apply_rules(*graph, {rule("swap", x + y, y + x)}, journal), InternalError);
}

TEST(ApplyRules, TakesNoRulesBeyondTheBudget) {
  Rule careless = rule("careless", x * 0.0, x);
  careless.numerics = Numerics::AssumesFinite;
  const std::string_view text =
      "graph g(%a: f32[2]) { %z = constant(value=f32[] {0}) %0 = mul(%a, %z) return %0 }";
  Journal by_default, fast(NumericsBudget::Fast);
  EXPECT_EQ(apply_rules(*parse_graph(text), {careless}, by_default), 0);
  EXPECT_EQ(apply_rules(*parse_graph(text), {careless}, fast), 1);
}

}  // namespace
}  // namespace tenon
