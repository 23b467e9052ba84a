#include "verify/bisect.h"

#include <cmath>

#include "base/temporary_folder.h"
#include "compile_here.h"
#include "frontends/onnx/import.h"
#include "ir/graph_text.h"
#include "ir/parse.h"
#include "passes/saturate.h"
#include "rewrite/apply.h"
#include "tensor/npy.h"

namespace tenon {

namespace {

const Pattern x = any("x"), y = any("y");

Rule wrong(std::string_view name, const Pattern& match, const Replacement& replace,
           Numerics numerics = Numerics::BitExact) {
  return {.name = name, .match = match, .replace = replace, .numerics = numerics, .fires = "", .stays = ""};
}

// Passes that are wrong on purpose.
void lose_tanh(Graph& graph, Journal& journal) {
  apply_rules(graph, {wrong("lose-tanh", unary("tanh", x), x)}, journal);
}
// Right only where x is not negative, and y not positive.
void add_magnitudes(Graph& graph, Journal& journal) {
  apply_rules(graph, {wrong("add-magnitudes", x - y, unary("abs", x) + unary("abs", y))}, journal);
}
// Right but for rounding, which a rule may not say is bit-exact.
void spell_out_sinh(Graph& graph, Journal& journal, Numerics numerics) {
  apply_rules(graph,
              {wrong("sinh-by-exp", unary("sinh", x), (unary("exp", x) - unary("exp", unary("neg", x))) * 0.5,
                     numerics)},
              journal);
}

constexpr std::string_view kModel = R"(graph g(%a: f32[3,n]) {
  %w = parameter(name="w", value=f32[] {0.5})
  %0 = mul(%a, %w) from "scale" %1 = tanh(%0) from "squash" %2 = exp(%1) from "grow" %3 = mul(%2, %a) from "gate"
  return %3 })";

BisectOptions with_pass(std::string_view name, void (*run)(Graph&, Journal&)) {
  BisectOptions options;
  options.verify.pipeline.push_back({name, "", run, ""});
  return options;
}

TEST(Bisect, FindsNothingWhereNothingIsWrong) { EXPECT_FALSE(bisect(*parse_graph(kModel))); }

// What saturation found in an e-graph is switched off rewrite by rewrite, like any other.
TEST(Bisect, NamesARewriteThatSaturationMade) {
  const Rules rules = {wrong("twice", unary("neg", unary("neg", x)), x),
                       wrong("lose-tanh", unary("tanh", x), x)};
  BisectOptions options;
  options.verify.pipeline = {saturation_pass({.seconds = 1e6, .rules = &rules})};
  const std::optional<Culprit> culprit = bisect(*parse_graph(R"(graph g(%a: f32[3,n]) {
    %0 = neg(%a) from "minus" %1 = neg(%0) from "plus" %2 = exp(%1) from "grow" %3 = tanh(%2) from "squash"
    return %3 })"),
                                                options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->application.pass, "saturate");
  EXPECT_EQ(culprit->application.rule, "lose-tanh");
  EXPECT_EQ(culprit->application.nodes, std::vector<std::string>{"squash"});
  EXPECT_EQ(culprit->numbers.verdict, Verdict::Failed);
}

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

TEST(Bisect, FindsTheRewriteAfterWhichTheModelNoLongerRuns) {
  const auto look_far = [](Graph& graph, Journal& journal) {
    apply_rules(graph, {wrong("look-far", unary("neg", x), x + 1e9)}, journal);
  };
  const std::optional<Culprit> culprit = bisect(
      *parse_graph(
          "graph g(%a: f32[4], %i: i64[2]) { %0 = neg(%i) %1 = gather(%a, %0) %2 = exp(%1) return %2 }"),
      with_pass("far", look_far));
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->application.rule, "look-far");
  EXPECT_TRUE(culprit->numbers.detail.starts_with("it no longer runs: ")) << culprit->numbers.detail;
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

TEST(Bisect, HoldsARewriteToExpectedOutputs) {
  BisectOptions options = with_pass("lose", lose_tanh);
  options.inputs = Data{f32({2}, {1, 2})};
  options.expected = Data{f32({2}, {0.7615942f, 0.9640276f})};
  const auto model = parse_graph("graph g(%a: f32[2]) { %0 = tanh(%a) return %0 }");
  const std::optional<Culprit> culprit = bisect(*model, options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->application.rule, "lose-tanh");
  options.verify.tolerance = 2;  // it may be off by twice the largest
  options.verify.pipeline.back().run = [](Graph& graph, Journal& journal) {
    apply_rules(graph, {wrong("lose-tanh", unary("tanh", x), x, Numerics::Reassociates)}, journal);
  };
  EXPECT_FALSE(bisect(*model, options));
}

TEST(Bisect, HoldsARewriteToItsClass) {
  const auto model = parse_graph("graph g(%a: f32[50]) { %0 = sinh(%a) from \"s\" %1 = cos(%0) return %1 }");
  EXPECT_FALSE(bisect(*model, with_pass("spell", [](Graph& graph, Journal& journal) {
    spell_out_sinh(graph, journal, Numerics::Reassociates);
  })));
  const std::optional<Culprit> culprit =
      bisect(*model, with_pass("spell", [](Graph& graph, Journal& journal) {
        spell_out_sinh(graph, journal, Numerics::BitExact);
      }));
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->application.rule, "sinh-by-exp");
  EXPECT_EQ(culprit->application.nodes, std::vector<std::string>{"s"});
  ASSERT_TRUE(culprit->model);
  EXPECT_EQ(difference(*culprit->model, *parse_graph("graph g(%a: f32[50]) { %0 = sinh(%a) return %0 }")),
            "");
}

TEST(Bisect, LooksIntoLoops) {
  BisectOptions options = with_pass("lose", lose_tanh);
  options.inputs = Data{f32({2}, {1, 2}), tensor(DType::I64, {}, {3})};
  const std::optional<Culprit> culprit = bisect(*parse_graph(R"(graph g(%a: f32[2], %n: i64[]) {
    %0 = while(%n, carried=[%a]) body(%i: i64[], %x: f32[2]) {
      %go = constant(value=bool[] {1}) %y = tanh(%x) from "inside" return %go, %y }
    %1 = exp(%0) return %1 })"),
                                                options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->application.nodes, std::vector<std::string>{"inside"});
  ASSERT_TRUE(culprit->model);
  EXPECT_EQ(culprit->model->outputs().front().node()->op().name, "while");
}

TEST(WriteCulprit, WritesAnOnnxModelThatShowsIt) {
  const BisectOptions options = with_pass("lose", lose_tanh);
  const std::optional<Culprit> culprit = bisect(*parse_graph(kModel), options);
  ASSERT_TRUE(culprit);
  const TemporaryFolder folder;
  const WrittenCulprit written = write_culprit(*culprit, folder / "small.onnx", options);
  EXPECT_EQ(written.model, folder / "small.onnx");
  EXPECT_EQ(written.why_not_onnx, "");
  const std::unique_ptr<Graph> back = onnx::read_onnx(written.model);
  EXPECT_EQ(back->node_count(), 1);
  // It is found there again, on the inputs beside it.
  BisectOptions again = with_pass("lose", lose_tanh);
  again.inputs = Data{read_npz(written.inputs).front().second};
  ASSERT_TRUE(bisect(*back, again));
}

TEST(WriteCulprit, WritesItsOwnFormWhereItsNameSaysSo) {
  const BisectOptions options = with_pass("lose", lose_tanh);
  const std::optional<Culprit> culprit = bisect(*parse_graph(kModel), options);
  ASSERT_TRUE(culprit);
  const TemporaryFolder folder;
  const WrittenCulprit written = write_culprit(*culprit, folder / "small.tenon", options);
  EXPECT_EQ(written.model, folder / "small.tenon");
  EXPECT_TRUE(std::filesystem::exists(written.model));
  EXPECT_EQ(written.why_not_onnx, "");
}

TEST(WriteCulprit, WhatOnnxSpellsInOtherOpsIsWrittenInItsOwnForm) {
  const BisectOptions options = with_pass("lose", [](Graph& graph, Journal& journal) {
    apply_rules(graph, {wrong("lose-silu", op("silu", {{"x", x}}), x)}, journal);
  });
  const std::optional<Culprit> culprit =
      bisect(*parse_graph("graph g(%a: f32[3]) { %0 = silu(%a) return %0 }"), options);
  ASSERT_TRUE(culprit);
  const TemporaryFolder folder;
  const WrittenCulprit written = write_culprit(*culprit, folder / "small.onnx", options);
  EXPECT_EQ(written.model, folder / "small.tenon");
  EXPECT_EQ(written.why_not_onnx,
            "written as ONNX, it is spelled in other ops, in which the rewrite finds nothing to do");
  EXPECT_FALSE(std::filesystem::exists(folder / "small.onnx"));
}

TEST(Bisect, AllowsForTheRoundingsOfHalvesAsVerifyDoes) {
  BisectOptions options;
  options.verify.pipeline.push_back(
      {"spell-out", "", [](Graph& g, Journal& j) { spell_out_sinh(g, j, Numerics::Reassociates); }, ""});
  const auto graph = parse_graph("graph g(%a: f16[64]) { %0 = sinh(%a) return %0 }");
  EXPECT_FALSE(bisect(*graph, options));
  EXPECT_FALSE(verify_pipeline(*graph, options.verify).back().failed());
}

TEST(Bisect, FindsNothingWhereTheProgramIsRight) {
  BisectOptions options;
  options.context = here();
  EXPECT_FALSE(bisect(*parse_graph(kModel), options));
}

// One portable rewrite comes before it, and is counted.
TEST(Bisect, NamesATargetRewriteAndASmallModel) {
  BisectOptions options;
  options.context = here();
  options.context->added_passes.push_back({"lose", "", lose_tanh, ""});
  const std::optional<Culprit> culprit = bisect(*parse_graph(R"(graph g(%a: f32[3,n]) {
    %1 = constant(value=f32[] {1}) %0 = mul(%a, %1) %2 = tanh(%0) from "squash" %3 = exp(%2) from "grow"
    return %3 })"),
                                                options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->level, Level::Target);
  EXPECT_EQ(culprit->application.number, 2);
  EXPECT_EQ(culprit->application.pass, "lose");
  EXPECT_EQ(culprit->application.rule, "lose-tanh");
  EXPECT_EQ(culprit->application.nodes, std::vector<std::string>{"squash"});
  EXPECT_FALSE(culprit->program);
  ASSERT_TRUE(culprit->model);
  EXPECT_EQ(difference(*culprit->model, *parse_graph("graph g(%a: f32[3,3]) { %0 = tanh(%a) return %0 }")),
            "");
  const TemporaryFolder folder;
  EXPECT_EQ(write_culprit(*culprit, folder / "small.onnx", options).why_not_onnx, "");
}

TEST(Bisect, APortableRewriteComesBeforeATargetRewrite) {
  BisectOptions options = with_pass("lose", lose_tanh);
  options.context = here();
  options.context->added_passes.push_back({"lose again", "", lose_tanh, ""});
  const std::optional<Culprit> culprit = bisect(*parse_graph(kModel), options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->level, Level::Portable);
  EXPECT_EQ(culprit->application.pass, "lose");
}

TEST(Bisect, HoldsTargetRewritesToTheirClass) {
  BisectOptions options;
  options.context = here();
  options.context->added_passes.push_back(
      {"spell", "", [](Graph& g, Journal& j) { spell_out_sinh(g, j, Numerics::BitExact); }, ""});
  const std::optional<Culprit> culprit = bisect(
      *parse_graph("graph g(%a: f32[50]) { %0 = sinh(%a) from \"s\" %1 = cos(%0) return %1 }"), options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->level, Level::Target);
  EXPECT_EQ(culprit->application.rule, "sinh-by-exp");
}

// The numbers cancel, so that generated code, which adds them up in f32, is off by more than the tolerance;
// but no kernel is wrong.
TEST(Bisect, BlamesTheProgramWhereNoRewriteIsWrong) {
  const auto model = parse_graph("graph g(%a: f32[4097]) { %0 = reduce_sum(%a, axes=[0]) return %0 }");
  std::vector<double> numbers(4097, 0.5);
  for (size_t i = 0; i < 2048; ++i) {
    numbers[i] = 1000 * std::sin(static_cast<double>(i));
    numbers[4095 - i] = -numbers[i];
  }
  BisectOptions options;
  options.inputs = Data{f32({4097}, numbers)};
  options.expected = evaluate(*model, *options.inputs);
  options.verify.tolerance = 1e-6;
  EXPECT_FALSE(bisect(*model, options));
  options.context = here();
  const std::optional<Culprit> culprit = bisect(*model, options);
  ASSERT_TRUE(culprit);
  EXPECT_EQ(culprit->level, Level::Compiled);
  EXPECT_EQ(culprit->numbers.verdict, Verdict::Failed);
  ASSERT_TRUE(culprit->program);
  EXPECT_EQ(culprit->program->part, "runtime");
  EXPECT_FALSE(culprit->program->kernel);
  EXPECT_FALSE(culprit->model);
}

}  // namespace
}  // namespace tenon
