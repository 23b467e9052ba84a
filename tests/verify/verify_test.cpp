#include "verify/verify.h"

#include "ir/graph_text.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "rewrite/apply.h"

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
                     const Value more = constant(graph, f32({2}, {0, -0.0}));
                     graph.set_outputs({graph.outputs()[0] + more}, graph.output_names());
                   },
                   ""});
  EXPECT_EQ(result.numbers.verdict, Verdict::Passed);
  EXPECT_EQ(result.parameters.verdict, Verdict::Failed);
  EXPECT_EQ(result.parameters.detail, "0 numbers became 2");
}

TEST(VerifyPass, LeavesParametersAloneThatNothingReads) {
  const PassVerification result = verify_pass(*parse_graph("graph g(%a: f32[2]) { %0 = exp(%a) return %0 }"),
                                              {"leave", "",
                                               [](Graph& graph, Journal&) {
                                                 constant(graph, f32({2}, {1, 2}));
                                               },
                                               ""});
  EXPECT_EQ(result.parameters.verdict, Verdict::Passed) << result.parameters.detail;
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

TEST(VerifyPass, SaysThatThereIsNoGradient) {
  const PassVerification result =
      verify_pass(*parse_graph("graph g(%a: i64[3]) { %0 = add(%a, %a) return %0 }"),
                  {"nothing", "", [](Graph&, Journal&) {}, ""});
  EXPECT_EQ(result.gradients.verdict, Verdict::NoGradient);
  EXPECT_EQ(result.numbers.verdict, Verdict::Passed);
  EXPECT_FALSE(result.failed());
}

TEST(VerifyPass, NamesGradientsThatAreNoMore) {
  const PassVerification result = verify_pass(*parse_graph(kModel), {"freeze", "", freeze_parameters, ""});
  EXPECT_FALSE(result.failed());
  EXPECT_EQ(result.gradients.verdict, Verdict::Passed);  // that for %a
  EXPECT_EQ(result.gradients.missing, std::vector<std::string>{"grad_w"});
}

TEST(VerifyPass, SaysWhichOutputsAreTooSmallToProveAnything) {
  const auto add_tiny = [](Graph& graph, Journal&) {
    const Value more = graph.outputs()[0] + scalar(graph, DType::F32, 1e-7);
    graph.set_outputs({more, graph.outputs()[1]}, graph.output_names());
  };
  const PassVerification result = verify_pass(
      *parse_graph(
          R"(graph g(%a: f32[3]) { %z = constant(value=f32[] {1e-12}) %0 = tanh(%a) %1 = mul(%0, %z) %2 = exp(%a)
        return %1 as "small", %2 as "large" })"),
      {"tiny", "", add_tiny, ""});
  EXPECT_EQ(result.numbers.verdict, Verdict::Passed);
  EXPECT_EQ(result.numbers.nearly_zero, std::vector<std::string>{"small"});
  EXPECT_FALSE(result.failed());
}

TEST(VerifyPass, KnowsWhenNothingIsProved) {
  const PassVerification result =
      verify_pass(*parse_graph(R"(graph g(%a: f32[3]) { %z = constant(value=f32[] {1e-12}) %0 = tanh(%a)
        %1 = mul(%0, %z) return %1 })"),
                  {"nothing", "", [](Graph&, Journal&) {}, ""});
  EXPECT_EQ(result.numbers.verdict, Verdict::Unknown);
  EXPECT_EQ(result.numbers.detail, "all outputs are nearly zero, so that agreeing proves nothing");
  EXPECT_FALSE(result.failed());
}

TEST(VerifyPass, ComparesNumbersWhereNoGradientCanBeDrawn) {
  // Only running tells how large the output is, and with it the gradient that would have to be given.
  const PassVerification result = verify_pass(*parse_graph(R"(graph g(%a: f32[3]) {
        %0 = exp(%a) %1 = reduce_sum(%0, axes=[0]) %s = constant(value=f32[] {0}) %d = constant(value=f32[] {0.5})
        %2 = range(%s, %1, %d) %3 = exp(%2) return %3 })"),
                                              {"nothing", "", [](Graph&, Journal&) {}, ""});
  EXPECT_EQ(result.numbers.verdict, Verdict::Passed);
  EXPECT_EQ(result.gradients.verdict, Verdict::Unknown);
  EXPECT_TRUE(result.gradients.detail.starts_with("not compared: input \"grad_seed\" of type "))
      << result.gradients.detail;
}

TEST(VerifyPass, AValueWhereThereShouldBeNoneIsWrong) {
  const auto forget_zero = [](Graph& graph, Journal&) {
    graph.set_outputs({graph.input(0)}, graph.output_names());
  };
  const PassVerification result = verify_pass(
      *parse_graph("graph g(%a: f32[3]) { %0 = sub(%a, %a) return %0 }"), {"forget", "", forget_zero, ""});
  EXPECT_EQ(result.numbers.verdict, Verdict::Failed);
}

// What a pass that adds `offset` to outputs around 1 is told.
Verdict verdict_of_offset(std::string_view text, double offset) {
  const auto add_offset = [offset](Graph& graph, Journal&) {
    graph.set_outputs({graph.outputs()[0] + offset}, graph.output_names());
  };
  return verify_pass(*parse_graph(text), {"offset", "", add_offset, ""}).numbers.verdict;
}

TEST(VerifyPass, AllowsForTheRoundingsOfNarrowFloats) {
  constexpr std::string_view kHalves = "graph g(%a: f16[8]) { %0 = cos(%a) return %0 }";
  EXPECT_EQ(verdict_of_offset(kHalves, 0.002), Verdict::Passed);
  EXPECT_EQ(verdict_of_offset(kHalves, 0.02), Verdict::Failed);
  constexpr std::string_view kBrain = "graph g(%a: bf16[8]) { %0 = cos(%a) return %0 }";
  EXPECT_EQ(verdict_of_offset(kBrain, 0.016), Verdict::Passed);
  EXPECT_EQ(verdict_of_offset(kBrain, 0.2), Verdict::Failed);
  // What is rounded on the way counts, in nested graphs too.
  EXPECT_EQ(verdict_of_offset(R"(graph g(%a: f32[8]) {
    %0 = cos(%a) %1 = cast(%0, to=f16) %2 = cast(%1, to=f32) return %2 })",
                              0.002),
            Verdict::Passed);
  EXPECT_EQ(verdict_of_offset(R"(graph g(%c: bool[], %a: f32[8]) {
    %0 = if(%c, [%a]) then(%a: f32[8]) { %0 = cast(%a, to=f16) %1 = cos(%0) %2 = cast(%1, to=f32) return %2 }
      else(%a: f32[8]) { %0 = cos(%a) return %0 } return %0 })",
                              0.002),
            Verdict::Passed);
}

TEST(VerifyPass, HoldsWiderFloatsToTheTolerance) {
  EXPECT_EQ(verdict_of_offset("graph g(%a: f32[8]) { %0 = cos(%a) return %0 }", 0.002), Verdict::Failed);
  // Weights and inputs may be narrow where nothing is rounded to them.
  EXPECT_EQ(verdict_of_offset(R"(graph g(%a: f16[2]) {
    %w = constant(value=f16[2] {1, 2}) %0 = cast(%a, to=f32) %1 = cast(%w, to=f32) %2 = mul(%0, %1) %3 = cos(%2)
    return %3 })",
                              0.002),
            Verdict::Failed);
  // So many steps of a quantised number would let anything pass.
  EXPECT_EQ(verdict_of_offset(R"(graph g(%a: f32[8]) {
    %0 = cos(%a) %1 = cast(%0, to=f8e4m3fn) %2 = cast(%1, to=f32) return %2 })",
                              0.002),
            Verdict::Failed);
}

TEST(VerifyPass, StrictNumericsKeepTheSignOfZero) {
  const auto add_zero = [](Graph& graph, Journal&) {
    graph.set_outputs({graph.outputs()[0] + 0.0}, graph.output_names());
  };
  const auto verdict = [&](NumericsBudget numerics) {
    VerifyOptions options;
    options.numerics = numerics;
    return verify_pass(
               *parse_graph("graph g(%a: f32[3]) { %c = constant(value=f32[3] {-0, 1, 2}) %0 = abs(%a) "
                            "%1 = mul(%0, %c) return %1 }"),
               {"add", "", add_zero, ""}, options)
        .numbers.verdict;
  };
  EXPECT_EQ(verdict(NumericsBudget::Strict), Verdict::Failed);
  EXPECT_EQ(verdict(NumericsBudget::Default), Verdict::Passed);
}

// Takes the elements of %a at indices that are not there.
void look_too_far(Graph& graph, Journal& journal) {
  for (Node* node : graph.nodes())
    if (node->is("gather")) {
      const InsertAfter here(node);
      const Value far = node->in("indices") + 1e9;
      const Value y =
          graph.create("gather", {{"x", node->in("x")}, {"indices", far}}, node->attributes())->result();
      journal.applied("far", {node}, Numerics::BitExact);
      graph.replace(node, {y});
    }
}

TEST(VerifyPass, AModelThatNoLongerRunsIsWrong) {
  const PassVerification result = verify_pass(
      *parse_graph("graph g(%a: f32[4], %i: i64[2]) { %0 = gather(%a, %i) %1 = exp(%0) return %1 }"),
      {"far", "", look_too_far, ""});
  EXPECT_EQ(result.numbers.verdict, Verdict::Failed);
  EXPECT_TRUE(result.numbers.detail.starts_with("it no longer runs: ")) << result.numbers.detail;
}

TEST(VerifyPipeline, GoesOnAfterAPassThatBreaksTheModel) {
  VerifyOptions options;
  const auto far = [](Graph& g, Journal& journal) {
    if (journal.count() == 0)
      look_too_far(g, journal);
  };
  options.pipeline.insert(options.pipeline.begin(), {"far", "", far, ""});
  const std::vector<PassVerification> results =
      verify_pipeline(*parse_graph("graph g(%a: f32[4], %i: i64[2]) { %1 = constant(value=f32[] {1}) "
                                   "%0 = gather(%a, %i) %2 = mul(%0, %1) %3 = tanh(%2) return %3 }"),
                      options);
  ASSERT_GE(results.size(), 3u);
  EXPECT_EQ(results[0].numbers.verdict, Verdict::Failed);
  EXPECT_EQ(results[1].numbers.verdict, Verdict::Unknown);
  EXPECT_TRUE(results[1].numbers.detail.starts_with("not compared: what stood there cannot be run: "))
      << results[1].numbers.detail;
  EXPECT_EQ(results.back().numbers.verdict, Verdict::Failed);
}

TEST(VerifyPass, SaysWhatItDidNotCompareAndWhy) {
  const auto break_form = [](Graph& graph, Journal&) {
    graph.nodes().back()->set_operand(0, graph.input(1));
  };
  const PassVerification result =
      verify_pass(*parse_graph("graph g(%a: f32[2], %b: f32[3]) { %0 = exp(%a) %1 = mul(%0, %a) return %1 }"),
                  {"break", "", break_form, ""});
  EXPECT_EQ(result.lint.verdict, Verdict::Failed);
  for (const Check& check : {result.numbers, result.gradients, result.parameters}) {
    EXPECT_EQ(check.verdict, Verdict::Unknown);
    EXPECT_EQ(check.detail, "not compared: the graph is not well formed");
  }
}

TEST(HeldNumbers, AreThoseOfTheModelOnceAllThatIsFixedIsComputed) {
  EXPECT_EQ(count_held_numbers(*parse_graph(R"(graph g(%a: f32[2,3]) {
    %w = parameter(name="w", value=f32[3] {1, 2, 3}) %s = constant(value=f32[3] {1, 2, 3}) %0 = mul(%w, %s)
    %1 = add(%a, %0) return %1 })")),
            3);
  // A table that is made of the sizes of an input, and one number throughout.
  EXPECT_EQ(count_held_numbers(*parse_graph(R"(graph g(%a: f32[4,4]) {
    %s = shape(%a) %o = constant(value=f32[] {1}) %1 = broadcast(%o, %s) %2 = triangle(%1, upper=true)
    %3 = add(%a, %2) %4 = mul(%3, %1) return %4 })")),
            16);
  // A matrix that is computed twice, and a vector, each of which two nodes read.
  const auto shared = parse_graph(R"(graph g(%a: f32[2,2]) {
    %w = parameter(name="w", value=f32[2,2] {1, 2, 3, 4}) %b = parameter(name="b", value=f32[2] {1, 2})
    %0 = exp(%w) %1 = exp(%w) %2 = add(%a, %0) %3 = mul(%2, %1) %4 = sub(%3, %b) %5 = mul(%4, %b) return %5 })");
  EXPECT_EQ(count_held_numbers(*shared), 4 + 2);
  EXPECT_EQ(count_held_numbers(*shared, SharedNumbers::CountForEachReader), 2 * 4 + 2 * 2);
  // Quantised weights, be they multiplied as integers or as floats, but not indices.
  EXPECT_EQ(count_held_numbers(*parse_graph(R"(graph g(%a: i32[3,2]) {
    %w = constant(value=i8[2,2] {1, 2, 3, 4}) %0 = cast(%w, to=i32) %1 = matmul(%a, %0)
    %i = constant(value=i64[2,2] {0, 1, 1, 0}) %2 = gather(%1, %i, axis=1) return %2 })")),
            4);
}

// A mask of -1e9 is computed of one of truth values.
TEST(HeldNumbers, AreAlsoThoseOfMasks) {
  EXPECT_EQ(count_held_numbers(*parse_graph(R"(graph g(%a: f32[2,2]) {
    %m = constant(value=bool[2,2] {1, 0, 0, 1}) %f = constant(value=f32[] {-1e9})
    %0 = where(%m, %f, %a) return %0 })")),
            4);
}

// A product of integers that is scaled becomes one of dequantised numbers.
TEST(VerifyPipeline, TakesQuantisedWeightsForParameters) {
  const std::vector<PassVerification> results = verify_pipeline(*parse_graph(R"(graph g(%q: u8[3,4]) {
    %w = constant(value=i8[4,3] {1, -2, 3, 4, 5, -6, 7, 8, 9, 10, 11, 12})
    %0 = cast(%q, to=i32) %1 = cast(%w, to=i32) %2 = matmul(%0, %1) %3 = cast(%2, to=f32)
    %s = parameter(name="s", value=f32[] {0.5}) %4 = mul(%3, %s) return %4 })"));
  for (const PassVerification& result : results)
    EXPECT_EQ(result.parameters.verdict, Verdict::Passed) << result.pass << ": " << result.parameters.detail;
}

// More numbers than a model may compute to be small.
std::unique_ptr<Graph> large_model() {
  return parse_graph(R"(graph g(%a: f32[1500,1000]) {
    %w = parameter(name="w", value=f32[] {0.5}) %1 = constant(value=f32[] {1})
    %0 = mul(%a, %1) from "idle" %2 = tanh(%0) from "squash" %3 = mul(%2, %w) from "scale" %4 = exp(%3) from "grow"
    return %4 })");
}

TEST(VerifyPipeline, ChecksEveryRewriteOfALargeModel) {
  std::vector<std::string> stretches;
  VerifyOptions options;
  options.listener.begin = [&](std::string_view what, int64_t) { stretches.emplace_back(what); };
  const std::vector<PassVerification> results = verify_pipeline(*large_model(), options);
  ASSERT_GE(results.size(), 2u);
  for (const PassVerification& result : results) {
    EXPECT_FALSE(result.failed()) << result.pass << ": " << result.numbers.detail;
    EXPECT_EQ(result.numbers.verdict, Verdict::Passed) << result.pass;
    EXPECT_EQ(result.gradients.verdict, Verdict::Unknown);
  }
  EXPECT_EQ(stretches,
            (std::vector<std::string>{"running node", "checking rewrite", "running optimised node"}));
}

TEST(VerifyPipeline, ComparesGradientsWhenAskedTo) {
  VerifyOptions options;
  options.gradients = GradientChecks::Always;
  const std::vector<PassVerification> large = verify_pipeline(*large_model(), options);
  EXPECT_EQ(large.back().gradients.verdict, Verdict::Passed) << large.back().gradients.detail;
  EXPECT_EQ(large.front().gradients.detail,
            "not compared: the model is large, so that only those of the whole are");
  options.gradients = GradientChecks::Never;
  for (const PassVerification& result : verify_pipeline(
           *parse_graph("graph g(%a: f32[2]) { %1 = constant(value=f32[] {1}) %0 = mul(%a, %1) %2 = exp(%0) "
                        "return %2 }"),
           options)) {
    EXPECT_EQ(result.gradients.verdict, Verdict::Unknown);
    EXPECT_EQ(result.gradients.detail, "not compared: they were not asked for");
  }
}

TEST(VerifyPipeline, NamesTheWrongRewriteOfALargeModel) {
  VerifyOptions options;
  options.pipeline.insert(options.pipeline.begin(), {"lose", "", lose_tanh, ""});
  const std::vector<PassVerification> results = verify_pipeline(*large_model(), options);
  EXPECT_EQ(results.front().pass, "lose");
  EXPECT_EQ(results.front().changes, 1);
  EXPECT_EQ(results.front().numbers.verdict, Verdict::Failed);
  EXPECT_TRUE(
      results.front().numbers.detail.starts_with("rewrite 1 (lose-tanh), bit-exact, of squash: element "))
      << results.front().numbers.detail;
  EXPECT_EQ(results.back().numbers.verdict, Verdict::Failed);
  // What is right is not blamed.
  for (size_t i = 1; i + 1 < results.size(); ++i)
    EXPECT_EQ(results[i].numbers.verdict, Verdict::Passed) << results[i].pass;
}

TEST(VerifyPipeline, KnowsALargeModelThatTurnsRoundingIntoSomethingElse) {
  // The two products become one, which differs in its last bit, and after ten million so do the sines in
  // their first.
  const auto graph = parse_graph(R"(graph g(%a: f32[1700000]) {
    %1 = constant(value=f32[] {10000}) %2 = constant(value=f32[] {1000}) %3 = mul(%a, %1) %4 = mul(%3, %2)
    %5 = sin(%4) return %5 as "y" })");
  const std::vector<PassVerification> results = verify_pipeline(*graph, {});
  ASSERT_GE(results.size(), 2u);
  EXPECT_EQ(results.front().numbers.verdict, Verdict::Passed) << results.front().numbers.detail;
  EXPECT_EQ(results.back().numbers.verdict, Verdict::Unknown);
  EXPECT_EQ(results.back().numbers.unsteady, std::vector<std::string>{"y"});
}

TEST(VerifyPipeline, NamesTheRewritesOfALargeModelThatWereNotChecked) {
  const auto graph = parse_graph(R"(graph g(%a: f32[2600000], %i: i64[2]) {
    %1 = constant(value=f32[] {1}) %0 = gather(%a, %i) from "take" %2 = mul(%0, %1) from "idle" %3 = tanh(%2)
    %4 = tanh(%a) %5 = exp(%4) %6 = reduce_sum(%5, axes=[0]) %7 = mul(%3, %6) return %7 })");
  VerifyOptions options;
  const auto far = [](Graph& g, Journal& journal) {
    if (journal.count() == 0)
      look_too_far(g, journal);
  };
  options.pipeline.insert(options.pipeline.begin(), {"far", "", far, ""});
  const std::vector<PassVerification> results = verify_pipeline(*graph, options);
  ASSERT_GE(results.size(), 3u);
  EXPECT_EQ(results[0].numbers.verdict, Verdict::Failed);
  EXPECT_EQ(results[1].numbers.verdict, Verdict::Unknown);
  EXPECT_EQ(results[1].numbers.detail, "no rewrite could be compared with what stood there");
  EXPECT_EQ(results[1].numbers.nearly_zero, std::vector<std::string>());
  ASSERT_FALSE(results[1].numbers.unchecked.empty());
  EXPECT_EQ(results[1].numbers.unchecked.front(),
            "rewrite 2 (multiply-by-one): what rewrite 1 (far) made cannot be run");
  EXPECT_EQ(results.back().numbers.verdict, Verdict::Failed);
}

}  // namespace
}  // namespace tenon
