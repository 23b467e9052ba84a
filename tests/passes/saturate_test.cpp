#include "passes/saturate.h"

#include "ir/graph_text.h"
#include "ir/print.h"
#include "passes/written_cost.h"

namespace tenon {
namespace {

// Limits by which two runs are the same, and which the tests never meet.
const SaturationOptions kOptions = {.seconds = 1e6, .limits = {.members = 400, .candidates = 2000}};

struct Saturated {
  std::unique_ptr<Graph> graph;
  Journal journal;
};

Saturated saturated(std::string_view text, NumericsBudget budget = NumericsBudget::Default,
                    int64_t most = std::numeric_limits<int64_t>::max()) {
  Saturated result{parse_graph(text), Journal(budget, most)};
  result.journal.set_pass("saturate");
  saturate_graph(*result.graph, result.journal, kOptions, written_cost());
  EXPECT_EQ(lint(*result.graph), std::vector<std::string>());
  return result;
}

void expect_saturated(std::string_view before, std::string_view after,
                      NumericsBudget budget = NumericsBudget::Default) {
  const Saturated result = saturated(before, budget);
  EXPECT_EQ(difference(*result.graph, *parse_graph(after)), "") << print(*result.graph);
}

int64_t nodes_after(const std::vector<Pass>& pipeline, std::string_view text) {
  const std::unique_ptr<Graph> graph = parse_graph(text);
  Journal journal;
  optimize(*graph, journal, {.pipeline = pipeline, .lint_everything = true});
  return count_nodes(*graph);
}

constexpr std::string_view kProductsOfTwo = R"(graph g(%x: f32[1,3], %h: f32[1,2]) {
  %v = parameter(name="v", value=f32[3,4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3})
  %w = parameter(name="w", value=f32[2,4] {4, 3, 2, 1, 8, 7, 6, 5})
  %0 = matmul(%x, %v) from "left"
  %1 = matmul(%h, %w) from "right"
  %2 = add(%0, %1) from "sum"
  %3 = tanh(%2)
  return %3 })";

TEST(Saturate, JoinsProductsThatAreAddedUp) {
  expect_saturated(kProductsOfTwo, R"(graph g(%x: f32[1,3], %h: f32[1,2]) {
    %v = parameter(name="v", value=f32[3,4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3})
    %w = parameter(name="w", value=f32[2,4] {4, 3, 2, 1, 8, 7, 6, 5})
    %0 = concat([%x, %h], axis=-1)
    %1 = concat([%v, %w], axis=-2)
    %2 = matmul(%0, %1)
    %3 = tanh(%2)
    return %3 })");
}

TEST(Saturate, NamesEachRewriteAndWhatItReplaces) {
  const Saturated result = saturated(kProductsOfTwo);
  ASSERT_EQ(result.journal.count(), 1);
  const Application& application = result.journal.applications().front();
  EXPECT_EQ(application.pass, "saturate");
  EXPECT_EQ(application.rule, "sum-of-products");
  EXPECT_EQ(application.numerics, Numerics::Reassociates);
  EXPECT_EQ(application.nodes, std::vector<std::string>{"sum"});
}

TEST(Saturate, KeepsSumsApartUnderStrictNumerics) {
  expect_saturated(kProductsOfTwo, kProductsOfTwo, NumericsBudget::Strict);
}

TEST(Saturate, LeavesWhatOthersNeedWhereThatIsCheaper) {
  // Both products are needed anyway: the joined one would be a third.
  constexpr std::string_view text = R"(graph g(%x: f32[1,3], %h: f32[1,2], %v: f32[3,4], %w: f32[2,4]) {
    %0 = matmul(%x, %v) %1 = matmul(%h, %w) %2 = add(%0, %1) return %0, %1, %2 })";
  expect_saturated(text, text);
}

TEST(Saturate, LeavesWhatCannotBecomeBetter) {
  constexpr std::string_view text = "graph g(%x: f32[2,2]) { %0 = exp(%x) %1 = tanh(%0) return %1 }";
  const Saturated result = saturated(text);
  EXPECT_EQ(difference(*result.graph, *parse_graph(text)), "");
  EXPECT_EQ(result.journal.count(), 0);
}

constexpr std::string_view kBranches = R"(graph g(%x: f32[1,4,5,5]) {
  %v = parameter(name="v", value=f32[2,4,1,1] {1, 2, 3, 4, 5, 6, 7, 8})
  %w = parameter(name="w", value=f32[2,4,1,1] {4, 3, 2, 1, 8, 7, 6, 5})
  %p = parameter(name="p", value=f32[2,1,1] {1, 2})
  %q = parameter(name="q", value=f32[2,1,1] {3, 4})
  %0 = conv(%x, %v, pads=[0, 0, 0, 0], strides=[1, 1]) %1 = add(%0, %p) %2 = relu(%1)
  %3 = conv(%x, %w, pads=[0, 0, 0, 0], strides=[1, 1]) %4 = add(%3, %q) %5 = relu(%4)
  %6 = concat([%2, %5], axis=1)
  return %6 })";

TEST(Saturate, MakesOneConvolutionOfBranchesThatArePutTogether) {
  expect_saturated(kBranches, R"(graph g(%x: f32[1,4,5,5]) {
    %v = parameter(name="v", value=f32[2,4,1,1] {1, 2, 3, 4, 5, 6, 7, 8})
    %w = parameter(name="w", value=f32[2,4,1,1] {4, 3, 2, 1, 8, 7, 6, 5})
    %p = parameter(name="p", value=f32[2,1,1] {1, 2})
    %q = parameter(name="q", value=f32[2,1,1] {3, 4})
    %2 = concat([%p, %q], axis=0)
    %0 = concat([%v, %w], axis=0)
    %1 = conv(%x, %0, pads=[0, 0, 0, 0], strides=[1, 1])
    %3 = add(%1, %2)
    %4 = relu(%3)
    return %4 })",
                   NumericsBudget::Strict);
}

TEST(Saturate, GivesTheSameGraphEveryTime) {
  for (std::string_view text : {kProductsOfTwo, kBranches}) {
    const Saturated first = saturated(text), second = saturated(text);
    EXPECT_EQ(print(*first.graph), print(*second.graph));
    EXPECT_EQ(first.journal.count(), second.journal.count());
  }
}

TEST(Saturate, CanBeStoppedAfterAnyRewrite) {
  const Tensor x = f32({1, 4, 5, 5}, [] {
    std::vector<double> numbers;
    for (int i = 0; i < 100; ++i)
      numbers.push_back(i % 7 - 3);
    return numbers;
  }());
  const Data expected = run_text(kBranches, {x});
  const int64_t all = saturated(kBranches).journal.count();
  EXPECT_EQ(all, 3);  // the functions, the biases, the products
  std::set<std::string> graphs;
  for (int64_t most = 0; most <= all; ++most) {
    const Saturated result = saturated(kBranches, NumericsBudget::Default, most);
    EXPECT_EQ(result.journal.count(), most);
    EXPECT_TRUE(graphs.insert(print(*result.graph)).second) << "rewrite " << most << " changes nothing";
    EXPECT_TRUE(identical(evaluate(*result.graph, {x}).front().tensor(), expected.front().tensor()));
  }
}

TEST(Saturate, StaysWithinPureRegions) {
  // Two draws are two numbers, whatever stands around them.
  constexpr std::string_view text = R"(graph g(%x: f32[2]) {
    %s = constant(value=i64[1] {2}) %0 = random_uniform(%s, dtype=f32) %1 = add(%x, %0)
    %2 = random_uniform(%s, dtype=f32) %3 = add(%x, %2) %4 = mul(%1, %3) return %4 })";
  expect_saturated(text, text);
}

TEST(Saturate, LooksIntoNestedGraphs) {
  // One product of two weights, in one branch; the other has one product only.
  const Saturated result = saturated(R"(graph g(%c: bool[], %x: f32[64,3], %v: f32[3,4], %w: f32[3,4]) {
    %y = if(%c, [%x, %v, %w])
      then(%a: f32[64,3], %b: f32[3,4], %d: f32[3,4]) {
        %0 = matmul(%a, %b) %1 = matmul(%a, %d) %2 = concat([%0, %1], axis=1) %3 = tanh(%2) return %3 }
      else(%a: f32[64,3], %b: f32[3,4], %d: f32[3,4]) {
        %0 = matmul(%a, %b) %1 = concat([%0, %0], axis=1) return %1 }
    return %y })");
  EXPECT_EQ(result.journal.count(), 1);
}

// A norm whose every element but one row is cut away: slices come first in the pipeline, and hide it.
constexpr std::string_view kNormBeforeSlice = R"(graph g(%x: f32[2,8,16]) {
  %w = parameter(name="w", value=f32[16] splat 1.5) %b = parameter(name="b", value=f32[16] splat 0.5)
  %n = constant(value=f32[] {1e-5})
  %0 = reduce_mean(%x, axes=[-1], keep_dims=true) %1 = sub(%x, %0) %2 = mul(%1, %1)
  %3 = reduce_mean(%2, axes=[-1], keep_dims=true) %4 = add(%3, %n) %5 = sqrt(%4) %6 = div(%1, %5)
  %7 = mul(%6, %w) %8 = add(%7, %b)
  %s = constant(value=i64[1] {0}) %e = constant(value=i64[1] {1})
  %9 = slice(%8, %s, %e, axes=[1]) %y = squeeze(%9, axes=[1]) return %y })";

TEST(Saturate, FindsANormBehindASlice) {
  const int64_t without = nodes_after(portable_pipeline(), kNormBeforeSlice);
  const int64_t with = nodes_after(saturating_pipeline(kOptions), kNormBeforeSlice);
  EXPECT_LT(with, without);
  EXPECT_EQ(with, 3);  // the slice, the squeeze and the norm
}

TEST(Saturate, LeavesRestOfThePipelineInPeace) {
  const std::vector<Pass> pipeline = saturating_pipeline(kOptions);
  EXPECT_EQ(pipeline.size(), portable_pipeline().size() + 1);
  for (std::string_view text : {kProductsOfTwo, kBranches, kNormBeforeSlice})
    EXPECT_LE(nodes_after(pipeline, text), nodes_after(portable_pipeline(), text));
}

}  // namespace
}  // namespace tenon
