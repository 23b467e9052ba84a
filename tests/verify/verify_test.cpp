#include "verify/verify.h"

#include "ir/graph_text.h"
#include "rewrite/apply.h"
#include "verify/bisect.h"

namespace tenon {
namespace {

const Pattern x = any("x"), y = any("y");

Rule wrong(std::string_view name, const Pattern& match, const Replacement& replace) {
  return {.name = name,
          .match = match,
          .replace = replace,
          .numerics = Numerics::BitExact,
          .fires = "",
          .stays = ""};
}

// Passes that are wrong on purpose.
void lose_tanh(Graph& graph, Journal& journal) {
  apply_rules(graph, {wrong("lose-tanh", unary("tanh", x), x)}, journal);
}
// Right only where x is not negative, and y not positive.
void add_magnitudes(Graph& graph, Journal& journal) {
  apply_rules(graph, {wrong("add-magnitudes", x - y, unary("abs", x) + unary("abs", y))}, journal);
}

constexpr std::string_view kModel = R"(graph g(%a: f32[3,n]) {
  %w = parameter(name="w", value=f32[] {0.5})
  %0 = mul(%a, %w) from "scale" %1 = tanh(%0) from "squash" %2 = exp(%1) from "grow" %3 = mul(%2, %a) from "gate"
  return %3 })";

TEST(VerifyPass, FindsThatNothingChanged) {
  const PassVerification result =
      verify_pass(*parse_graph(kModel), {"nothing", "", [](Graph&, Journal&) {}, ""});
  EXPECT_FALSE(result.failed());
  EXPECT_EQ(result.numbers.verdict, Verdict::Passed);
  EXPECT_EQ(result.gradients.verdict, Verdict::Passed);
  EXPECT_EQ(result.changes, 0);
}

TEST(VerifyPass, FindsWrongNumbersAndGradients) {
  const PassVerification result = verify_pass(*parse_graph(kModel), {"lose", "", lose_tanh, ""});
  EXPECT_TRUE(result.failed());
  EXPECT_EQ(result.numbers.verdict, Verdict::Failed);
  EXPECT_EQ(result.gradients.verdict, Verdict::Failed);
  EXPECT_EQ(result.lint.verdict, Verdict::Passed);
  EXPECT_EQ(result.changes, 1);
}

TEST(VerifyPass, FindsParametersThatGrow) {
  const PassVerification result =
      verify_pass(*parse_graph("graph g(%a: f32[2]) { %0 = exp(%a) return %0 }"),
                  {"grow", "",
                   [](Graph& graph, Journal&) {
                     graph.create("constant", {}, {{"value", Literal(Tensor(DType::F32, {5}))}});
                   },
                   ""});
  EXPECT_EQ(result.parameters.verdict, Verdict::Failed);
  EXPECT_EQ(result.parameters.detail, "0 numbers became 5");
}

TEST(VerifyPipeline, ChecksEveryPassThatChangesSomething) {
  const std::vector<PassVerification> results = verify_pipeline(*parse_graph(R"(graph g(%a: f32[2,n]) {
    %w = parameter(name="w", value=f32[] {0.5}) %1 = constant(value=f32[] {1})
    %0 = mul(%a, %1) %2 = mul(%0, %w) %3 = exp(%2) return %3 })"));
  ASSERT_GE(results.size(), 2u);
  EXPECT_EQ(results.back().pass, "everything");
  for (const PassVerification& result : results)
    EXPECT_FALSE(result.failed()) << result.pass << ": " << result.numbers.detail << result.gradients.detail;
}

TEST(Bisect, FindsNothingWhereNothingIsWrong) { EXPECT_FALSE(bisect(*parse_graph(kModel))); }

TEST(Bisect, NamesTheRewriteAndASmallModel) {
  BisectOptions options;
  options.verify.pipeline.insert(options.verify.pipeline.begin() + 2, {"lose", "", lose_tanh, ""});
  const std::optional<Culprit> culprit = bisect(*parse_graph(kModel), options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->application.rule, "lose-tanh");
  EXPECT_EQ(culprit->application.nodes, std::vector<std::string>{"squash"});
  EXPECT_EQ(culprit->numbers.verdict, Verdict::Failed);
  ASSERT_TRUE(culprit->model);
  EXPECT_EQ(difference(*culprit->model, *parse_graph("graph g(%a: f32[3,3]) { %0 = tanh(%a) return %0 }")),
            "");
}

TEST(Bisect, FindsTheOneOfManyThatMatters) {
  BisectOptions options;
  options.verify.pipeline.push_back({"magnitudes", "", add_magnitudes, ""});
  const std::optional<Culprit> culprit = bisect(*parse_graph(R"(graph g(%a: f32[4]) {
    %m = abs(%a) %n = neg(%m) %0 = sub(%m, %n) from "harmless" %1 = sub(%n, %m) from "harmful" %2 = add(%0, %1)
    %3 = mul(%2, %1) return %3 })"),
                                                options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->application.rule, "add-magnitudes");
  EXPECT_EQ(culprit->application.nodes, std::vector<std::string>{"harmful"});
}

TEST(Bisect, TakesInputsAndExpectedOutputs) {
  BisectOptions options;
  options.inputs = Data{f32({2}, {1, 2})};
  options.expected = Data{f32({2}, {5, 5})};
  expect_error<UserError>(
      [&] {
        bisect(
            *parse_graph("graph g(%a: f32[2]) { %1 = constant(value=f32[] {1}) %0 = mul(%a, %1) return %0 }"),
            options);
      },
      "the model does not agree with the expected outputs even before it is optimised");
}

}  // namespace
}  // namespace tenon
