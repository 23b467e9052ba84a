#include "passes/pipeline.h"

#include <mutex>

#include "ops/activation.h"
#include "ops/registry.h"
#include "passes/expect_pass.h"

namespace tenon {
namespace {

constexpr std::string_view kText = R"(graph g(%x: f32[2]) {
  %1 = constant(value=f32[] {1}) %a = mul(%x, %1) %b = exp(%a) %c = exp(%x) %d = add(%b, %c) return %d })";

TEST(Optimize, RunsUntilNothingChanges) {
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  Journal journal;
  optimize(*graph, journal, {.lint_everything = true});
  EXPECT_EQ(difference(*graph, *parse_graph(R"(graph g(%x: f32[2]) {
    %b = exp(%x) %2 = constant(value=f32[] {2}) %d = mul(%b, %2) return %d })")),
            "")
      << print(*graph);
  Journal again;
  optimize(*graph, again);
  EXPECT_TRUE(again.applications().empty());
}

TEST(Optimize, FollowsSizesOutOfNestedGraphs) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(graph g(%c: bool[], %x: f32[n]) {
    %0 = if(%c, [%x]) then(%x: f32[n]) {
      %1, %3 = while(carried=[%x]) body(%i: i64[], %y: f32[n]) {
        %go = constant(value=bool[] {0}) %2 = neg(%y) return %go, %2, %2 }
      return %3 }
    else(%x: f32[n]) { %1 = unsqueeze(%x, axes=[0]) return %1 }
    return %0 })");
  Journal journal;
  optimize(*graph, journal, {.lint_everything = true});
  EXPECT_EQ(to_string(graph->outputs().front().type()), "f32[1,n]");
}

// x is rounded by what is added to it, and taken off again.
TEST(Optimize, KeepsWhatRounds) {
  for (const char* shape : {"4", "n", "n,3", "1"}) {
    const std::string text = fmt::format(
        "graph g(%x: f32[{}]) {{ %c = constant(value=f32[] {{12582912}}) %t = add(%x, %c) %y = sub(%t, %c) "
        "return %y }}",
        shape);
    const std::unique_ptr<Graph> graph = parse_graph(text);
    Journal journal;
    optimize(*graph, journal);
    EXPECT_EQ(graph->node_count(), parse_graph(text)->node_count() + 1) << print(*graph);  // -c
    const std::unique_ptr<Graph> small = parse_graph(
        "graph g(%x: f32[4]) { %c = constant(value=f32[] {3}) %t = add(%x, %c) %y = sub(%t, %c) return %y }");
    optimize(*small, journal);
    EXPECT_EQ(small->node_count(), 0) << print(*small);
  }
}

TEST(Optimize, LeavesOutWhatIsDisabled) {
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  Journal journal;
  for (const PassReport& report : optimize(*graph, journal, {.disabled = {"merge-equal"}}))
    EXPECT_NE(report.pass, "merge-equal");
  EXPECT_EQ(count_nodes(*graph), 3);
}

// The scale is a parameter, whose value no rule looks at in the first round.
TEST(Optimize, HasNoRemarksOnWhatALaterRoundRewrites) {
  const std::unique_ptr<Graph> graph =
      parse_graph(R"(graph g(%q: f32[2,4,8,16], %k: f32[2,4,8,16], %v: f32[2,4,8,5]) {
    %c = parameter(name="c", value=f32[] {4}) %s = matmul(%q, %k, transpose_b=true) from "scores"
    %d = div(%s, %c) from "scale" %p = softmax(%d) from "weigh" %y = matmul(%p, %v) from "mix" return %y })");
  Journal journal;
  optimize(*graph, journal);
  EXPECT_TRUE(graph->outputs().front().node()->is("attention"));
  for (const Remark& remark : journal.remarks())
    ADD_FAILURE() << remark.node << ": " << remark.rule << ": " << remark.reason;
}

TEST(CountNodes, LeavesOutWhatFollowsFromConstants) {
  EXPECT_EQ(count_nodes(*parse_graph(R"(graph g(%x: f32[2]) {
    %c = constant(value=f32[] {1}) %w = parameter(name="w", value=f32[2] {1, 2}) %s = mul(%w, %c) %t = exp(%s)
    %y = add(%x, %t) return %y, %t })")),
            1);
}

TEST(CountNodes, CountsNestedGraphsAndWhatIsDrawn) {
  EXPECT_EQ(count_nodes(*parse_graph(R"(graph g(%c: bool[], %x: f32[n]) {
    %0 = if(%c, [%x]) then(%x: f32[n]) {
      %1 = constant(value=f32[] {1}) %2 = neg(%1) %3 = mul(%x, %2) return %3 }
    else(%x: f32[n]) { return %x }
    return %0 })")),
            2);
  EXPECT_EQ(count_nodes(*parse_graph(R"(graph g() {
    %s = constant(value=i64[1] {3}) %y = random_normal(%s, dtype=f32) %z = neg(%y) return %z })")),
            2);
}

TEST(Optimize, RunsOnlyWhatIsAskedFor) {
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  Journal journal;
  for (const PassReport& report : optimize(*graph, journal, {.only = {"simplify"}}))
    EXPECT_EQ(report.pass, "simplify");
}

TEST(Optimize, TellsOfEveryPassBeforeItRuns) {
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  Journal journal;
  std::vector<std::string> told, ran;
  const auto before_pass = [&](const Pass& pass, int64_t round) {
    told.push_back(fmt::format("{} {}", round, pass.name));
  };
  for (const PassReport& report : optimize(*graph, journal, {.before_pass = before_pass}))
    ran.push_back(fmt::format("{} {}", report.round, report.pass));
  EXPECT_EQ(told, ran);
}

TEST(Optimize, KnowsItsPasses) {
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  Journal journal;
  expect_error<UserError>([&] { optimize(*graph, journal, {.only = {"simplfy"}}); },
                          "there is no pass \"simplfy\"\n  hint: did you mean simplify?");
}

// What is added stays for all tests after it, so nothing else may look like it.
void add_mish_once() {
  static std::once_flag added;  // the test may be repeated
  std::call_once(added, [] {
    add_rewrite({.name = "mish-once",
                 .pattern = [](Value x) { return mish(mish(mish(x))); },
                 .replacement = [](Value x) { return mish(x); }},
                "merge-siblings");
  });
}

TEST(AddRewrite, TakesPartBeforeTheNamedPass) {
  register_ops();
  add_mish_once();
  const std::vector<Pass>& pipeline = portable_pipeline();
  const auto added = std::find_if(pipeline.begin(), pipeline.end(),
                                  [](const Pass& pass) { return pass.name == "mish-once"; });
  ASSERT_NE(added, pipeline.end());
  EXPECT_EQ((added + 1)->name, "merge-siblings");
  const std::unique_ptr<Graph> graph =
      parse_graph("graph g(%x: f32[n]) { %a = mish(%x) %b = mish(%a) %c = mish(%b) return %c }");
  Journal journal;
  optimize(*graph, journal);
  EXPECT_EQ(count_nodes(*graph), 1);
  EXPECT_EQ(journal.applications().front().pass, "mish-once");
}

TEST(AddPass, KnowsNames) {
  const auto nothing = [](Graph&, Journal&) {};
  std::vector<Pass> pipeline = portable_pipeline();
  expect_error<UserError>(
      [&] {
        insert_pass(pipeline, {"simplify", "", nothing, ""}, "normalise");
      },
      "there is a pass \"simplify\" already");
  expect_error<UserError>(
      [&] {
        insert_pass(pipeline, {"mine", "", nothing, ""}, "simplfy");
      },
      "there is no pass \"simplfy\"\n  hint: did you mean simplify?");
}

TEST(AddPass, MustComeToAnEnd) {
  const auto forever = [](Graph& graph, Journal& journal) {
    journal.applied("again", {graph.nodes().front()}, Numerics::BitExact);
  };
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  Journal journal;
  std::vector<Pass> pipeline = {{"mine", "", forever, "", true}};
  expect_error<UserError>(
      [&] { optimize(*graph, journal, {.pipeline = pipeline}); },
      "the pass mine finds something to do however often it runs: again (mine), again (mine), again (mine), "
      "again (mine), again (mine), again (mine), again (mine), again (mine), again (mine), again (mine)");
}

TEST(AddPass, MustNotUndoWhatOthersDo) {
  // The one that is ours comes last, and has the last word by more than is told.
  const auto shrink = [](Graph& graph, Journal& journal) {
    for (int i = 0; i < 12; ++i)
      journal.applied("shrink", {graph.nodes().front()}, Numerics::BitExact);
  };
  const auto grow = [](Graph& graph, Journal& journal) {
    journal.applied("grow", {graph.nodes().front()}, Numerics::BitExact);
  };
  const std::unique_ptr<Graph> graph = parse_graph(kText);
  const std::string changes =
      "shrink (ours), shrink (ours), shrink (ours), shrink (ours), shrink (ours), shrink (ours), shrink "
      "(ours), shrink (ours), shrink (ours), shrink (ours)";
  Journal journal;
  expect_error<UserError>(
      [&] {
        optimize(*graph, journal, {.pipeline = {{"mine", "", grow, "", true}, {"ours", "", shrink, ""}}});
      },
      "the pass mine and others undo each other, however often they run: " + changes);
  // Without any that was added, it is our bug.
  Journal without;
  EXPECT_THROW(optimize(*graph, without, {.pipeline = {{"ours", "", shrink, ""}}}), InternalError);
}

TEST(AddPass, MustLeaveAWellFormedGraph) {
  const auto disorder = [](Graph& graph, Journal&) {
    graph.move_before(graph.nodes().back(), graph.nodes().front());
  };
  const std::unique_ptr<Graph> graph =
      parse_graph("graph g(%x: f32[2]) { %a = exp(%x) %b = exp(%a) return %b }");
  Journal journal;
  expect_error<UserError>(
      [&] {
        optimize(*graph, journal, {.pipeline = {{"mine", "", disorder, "", true}}, .lint_everything = true});
      },
      "the pass mine leaves a graph that is not well formed: node %b: exp uses a value before it is made, or "
      "from another graph");
}

}  // namespace
}  // namespace tenon
