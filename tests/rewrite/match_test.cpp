#include "rewrite/match.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

std::optional<Match> find(const Pattern& pattern, Value value) {
  KnownRegions regions;
  return find_match(pattern, value, regions, [](const Match&) { return true; });
}

// Whether the pattern stands for the only output of the graph.
bool matches(const Pattern& pattern, std::string_view text) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  return find(pattern, graph->outputs().front()).has_value();
}

const Pattern x = any("x"), y = any("y"), c = constant("c");

TEST(Match, TriesBothOrdersOfACommutativeOp) {
  const Pattern pattern = unary("exp", x) + y;
  EXPECT_TRUE(
      matches(pattern, "graph g(%a: f32[2], %b: f32[2]) { %0 = exp(%a) %1 = add(%0, %b) return %1 }"));
  EXPECT_TRUE(
      matches(pattern, "graph g(%a: f32[2], %b: f32[2]) { %0 = exp(%a) %1 = add(%b, %0) return %1 }"));
  EXPECT_FALSE(matches(unary("exp", x) - y,
                       "graph g(%a: f32[2], %b: f32[2]) { %0 = exp(%a) %1 = sub(%b, %0) return %1 }"));
}

TEST(Match, OnePatternIsOneValue) {
  EXPECT_TRUE(matches(x * x, "graph g(%a: f32[2]) { %0 = mul(%a, %a) return %0 }"));
  EXPECT_FALSE(matches(x * x, "graph g(%a: f32[2], %b: f32[2]) { %0 = mul(%a, %b) return %0 }"));
}

TEST(Match, GoesBackWhenAnOrderLeadsNowhere) {
  // The first exp to be tried for exp(x) leaves nothing for log(x).
  const Pattern pattern = unary("exp", x) + (unary("exp", y) + unary("log", x));
  EXPECT_TRUE(matches(pattern, R"(graph g(%a: f32[2], %b: f32[2]) {
    %0 = exp(%a) %1 = exp(%b) %2 = log(%b) %3 = add(%0, %2) %4 = add(%3, %1) return %4 })"));
}

TEST(Match, ChainsStandInAnyOrderAndGrouping) {
  const Pattern pattern = product({x, unary("sigmoid", y), c});
  EXPECT_TRUE(matches(pattern, R"(graph g(%a: f32[2]) {
    %c = constant(value=f32[] {3}) %0 = sigmoid(%a) %1 = mul(%0, %c) %2 = mul(%1, %a) return %2 })"));
  EXPECT_TRUE(matches(pattern, R"(graph g(%a: f32[2]) {
    %c = constant(value=f32[] {3}) %0 = sigmoid(%a) %1 = mul(%a, %0) %2 = mul(%c, %1) return %2 })"));
  EXPECT_FALSE(matches(pattern, R"(graph g(%a: f32[2]) {
    %c = constant(value=f32[] {3}) %1 = mul(%a, %a) %2 = mul(%c, %1) return %2 })"));
}

TEST(Match, ChainsDoNotReachIntoWhatOthersUse) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(graph g(%a: f32[2], %b: f32[2], %c: f32[2]) {
    %0 = mul(%a, %b) %1 = mul(%0, %c) return %1, %0 })");
  EXPECT_FALSE(find(product({x, y, any("z")}), graph->outputs().front()));
}

TEST(Match, NumbersAreUniformConstants) {
  EXPECT_TRUE(matches(x * 2.0, R"(graph g(%a: f32[2,3]) {
    %c = constant(value=f32[3] {2, 2, 2}) %0 = mul(%a, %c) return %0 })"));
  EXPECT_FALSE(matches(x * 2.0, R"(graph g(%a: f32[2,3]) {
    %c = constant(value=f32[3] {2, 2, 3}) %0 = mul(%a, %c) return %0 })"));
  EXPECT_TRUE(matches(x * about(0.7071067811865475), R"(graph g(%a: f32[2]) {
    %c = constant(value=f32[] {0.70710677}) %0 = mul(%a, %c) return %0 })"));
  EXPECT_FALSE(matches(x * about(0.7071067811865475), R"(graph g(%a: f32[2]) {
    %c = constant(value=f32[] {0.7071}) %0 = mul(%a, %c) return %0 })"));
}

TEST(Match, ParametersAreConstantsOfUnknownValue) {
  const std::string_view text = R"(graph g(%a: f32[2]) {
    %p = parameter(name="p", value=f32[] {2}) %q = neg(%p) %0 = mul(%a, %q) return %0 })";
  EXPECT_TRUE(matches(x * c, text));
  EXPECT_FALSE(matches(x * -2.0, text));
}

TEST(Match, AsksForAttributesAndAbsentOperands) {
  EXPECT_TRUE(matches(unary("softmax", x).with("axis", 1),
                      "graph g(%a: f32[2,3]) { %0 = softmax(%a, axis=1) return %0 }"));
  EXPECT_FALSE(matches(unary("softmax", x).with("axis", 1),
                       "graph g(%a: f32[2,3]) { %0 = softmax(%a, axis=0) return %0 }"));
  EXPECT_FALSE(
      matches(op("linear", {{"x", x}, {"weight", y}}),
              "graph g(%a: f32[2,3], %w: f32[4,3], %b: f32[4]) { %0 = linear(%a, %w, %b) return %0 }"));
}

TEST(Match, TakesOneOfSeveral) {
  const Pattern pattern = optionally([](Pattern p) { return unary("relu", p); }, x + y);
  EXPECT_TRUE(matches(pattern, "graph g(%a: f32[2]) { %0 = add(%a, %a) %1 = relu(%0) return %1 }"));
  EXPECT_TRUE(matches(pattern, "graph g(%a: f32[2]) { %0 = add(%a, %a) return %0 }"));
  EXPECT_FALSE(matches(pattern, "graph g(%a: f32[2]) { %0 = mul(%a, %a) return %0 }"));
}

TEST(Match, NamesResultsByTheirIndex) {
  const std::unique_ptr<Graph> graph = parse_graph(
      "graph g(%a: f32[4]) { %s = constant(value=i64[2] {1, 3}) %0, %1 = split(%a, %s, axis=0) return %1 }");
  const Pattern split = op("split", {{"x", x}, {"sizes", y}});
  EXPECT_FALSE(find(split, graph->outputs().front()));
  EXPECT_TRUE(find(split.result(1), graph->outputs().front()));
}

TEST(Match, TakesAnyResultWhateverTheOperands) {
  const std::unique_ptr<Graph> graph = parse_graph(
      "graph g(%a: f32[4]) { %s = constant(value=i64[2] {1, 3}) %0, %1 = split(%a, %s, axis=0) return %1 }");
  const Value second = graph->outputs().front();
  EXPECT_TRUE(find(result_of("split"), second));
  EXPECT_TRUE(find(result_of("split").with("axis", 0), second));
  EXPECT_FALSE(find(result_of("split").with("axis", 1), second));
  EXPECT_TRUE(find(result_of("part", {"slice", "split"}), second));
  EXPECT_FALSE(find(result_of("concat"), second));
}

TEST(Match, FindsSeveralResultsFromAnyOfThem) {
  const auto graph = parse_graph(R"(graph g(%a: f32[2], %b: f32[2]) {
    %0 = cos(%b) %1 = sin(%a) %2 = exp(%1) %3 = neg(%a) %4 = cos(%3) return %0, %1, %2, %4 })");
  const std::vector<Value> outputs = graph->outputs();
  const Pattern deep = unary("exp", unary("sin", x)), other = unary("cos", -x);
  for (Value anchor : {outputs[2], outputs[3]}) {
    const auto match = find(together({deep, other}), anchor);
    ASSERT_TRUE(match);
    EXPECT_EQ(match->roots(), (std::vector<Value>{outputs[2], outputs[3]}));
    EXPECT_EQ(match->root(), outputs[2]);
    EXPECT_EQ(match->nodes().size(), 4u);
  }
  EXPECT_FALSE(find(together({deep, other}), outputs[0]));
}

TEST(Match, SeveralResultsAreDifferentAndNoneIsMadeOfAnother) {
  const auto graph = parse_graph(R"(graph g(%a: f32[2], %b: f32[2]) {
    %0 = sin(%a) %1 = mul(%a, %0) %2 = mul(%b, %b) return %0, %1, %2 })");
  const std::vector<Value> outputs = graph->outputs();
  const auto finds = [](const Pattern& pattern, Value value) { return find(pattern, value).has_value(); };
  EXPECT_FALSE(finds(together({unary("sin", x), x * y}), outputs[0]));  // y is the sine
  EXPECT_FALSE(finds(together({x * y, x * x}), outputs[2]));
  const Pattern sine = unary("sin", x);
  EXPECT_TRUE(finds(together({sine, x * sine}), outputs[0]));
  EXPECT_TRUE(finds(together({sine, x * sine}), outputs[1]));
}

TEST(Pattern, PrintsAsAFormula) {
  EXPECT_EQ(((x + c) * 2.0).to_string(), "((x + c) * 2)");
  EXPECT_EQ(unary("softmax", x).with("axis", 1).to_string(), "softmax(x, axis=1)");
  EXPECT_EQ(product({x, y, c}).to_string(), "(x * y * c)");
  EXPECT_EQ(together({-x, x + y}).to_string(), "neg(x), (x + y)");
  EXPECT_EQ(result_of("concat").with("axis", 1).to_string(), "concat(axis=1, …)");
}

}  // namespace
}  // namespace tenon
