#include "report/graph_history.h"

#include <gtest/gtest.h>

#include "ir/graph_text.h"
#include "passes/passes.h"
#include "passes/pipeline.h"

namespace tenon {
namespace {

std::vector<std::string> ops_of(const GraphHistory& history, const std::vector<int64_t>& numbers) {
  std::vector<std::string> ops;
  for (int64_t number : numbers)
    ops.push_back(history.nodes()[static_cast<size_t>(number)].op);
  return ops;
}

using Ops = std::vector<std::string>;

TEST(GraphHistory, TheFirstStageHoldsAll) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph main(%x: f32[4]) {
      %w: f32[4] = parameter(name="w", value=f32[4] {1, 2, 3, 4})
      %a = mul(%x, %w) from "scale"
      %y = softmax(%a, axis=0)
      return %y as "out"
    })");
  GraphHistory history;
  history.record("as read", *graph);
  ASSERT_EQ(history.stages().size(), 1U);
  const GraphStage& stage = history.stages().front();
  EXPECT_EQ(stage.name, "as read");
  EXPECT_EQ(stage.nodes, 2);
  EXPECT_EQ(ops_of(history, stage.added), (Ops{"input", "parameter", "mul", "softmax", "output"}));
  const SeenNode& scale = history.nodes()[2];
  EXPECT_EQ(scale.name, "scale");
  EXPECT_EQ(scale.type, "f32[4]");
  EXPECT_EQ(scale.kind, "compute");
  EXPECT_EQ(scale.inputs, (std::vector<SeenValue>{{0, 0}, {1, 0}}));
  EXPECT_EQ(history.nodes()[1].attributes, R"(name="w", value=f32[4] {1, 2, 3, 4})");
  EXPECT_EQ(history.nodes()[3].attributes, "axis=0");
  EXPECT_EQ(history.nodes()[4].name, "out");
}

TEST(GraphHistory, CutsLongAttributesBetweenCharacters) {
  std::string name;
  for (int i = 0; i < 500; ++i)
    name += "ü";
  const std::unique_ptr<Graph> graph = parse_graph(
      fmt::format(R"(graph() {{ %w: f32[1] = parameter(name="{}", value=f32[1] {{1}}) return %w }})", name));
  GraphHistory history;
  history.record("as read", *graph);
  const std::string start = "name=\"";
  EXPECT_EQ(history.nodes()[0].attributes, start + name.substr(0, 2 * (400 - start.size())) + "…");
}

TEST(GraphHistory, TellsWhatAPassAddedRemovedAndConnectedOtherwise) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph main(%x: f32[4]) {
      %a = relu(%x)
      %b = relu(%x)
      %c = add(%a, %b)
      return %c
    })");
  GraphHistory history;
  history.record("as read", *graph);
  Journal journal;
  merge_equal(*graph, journal);
  history.record("merge-equal", *graph);
  const GraphStage& stage = history.stages().back();
  EXPECT_EQ(stage.nodes, 2);
  EXPECT_EQ(ops_of(history, stage.added), Ops());
  EXPECT_EQ(stage.removed, std::vector<int64_t>{2});
  ASSERT_EQ(stage.rewired.size(), 1U);
  EXPECT_EQ(stage.rewired[0].first, 3);
  EXPECT_EQ(stage.rewired[0].second, (std::vector<SeenValue>{{1, 0}, {1, 0}}));
}

// A node that is made where another was erased may lie at its address.
TEST(GraphHistory, ANewNodeIsNotTheOneWhoseMemoryItGot) {
  const std::unique_ptr<Graph> graph = parse_graph("graph(%x: f32[4]) { %y = relu(%x) return %y }");
  GraphHistory history;
  history.record("as read", *graph);
  for (int i = 0; i < 20; ++i) {
    Node* old = graph->first();
    const char* op = old->is("relu") ? "neg" : "relu";
    const InsertBefore before(old);
    Node* fresh = graph->create(op, {{"x", graph->input(0)}});
    graph->replace(old, {fresh->result()});
    history.record("again", *graph);
    ASSERT_EQ(ops_of(history, history.stages().back().added), Ops{op});
    ASSERT_EQ(history.stages().back().removed.size(), 1U);
  }
}

TEST(GraphHistory, KnowsNestedGraphsAndSeveralResults) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph main(%c: bool[], %x: f32[4]) {
      %k = constant(value=i64[1] {2})
      %v, %i = top_k(%x, %k)
      %y = if(%c, [%v]) then(%a: f32[2]) {
        %b = relu(%a)
        return %b
      } else(%d: f32[2]) {
        return %d
      }
      %z = cast(%i, to=f32)
      return %y, %z
    })");
  GraphHistory history;
  history.record("as read", *graph);
  int64_t branch = -1;
  for (size_t i = 0; i < history.nodes().size(); ++i)
    if (history.nodes()[i].op == "if")
      branch = static_cast<int64_t>(i);
  ASSERT_GE(branch, 0);
  int nested = 0;
  for (const SeenNode& node : history.nodes()) {
    nested += node.parent == branch ? 1 : 0;
    if (node.op == "relu") {
      EXPECT_EQ(node.region, "then");
      EXPECT_EQ(node.parent, branch);
    }
    if (node.op == "cast") {
      EXPECT_EQ(node.inputs.front().result, 1);
    }
  }
  EXPECT_EQ(nested, 5);  // an input and an output of each branch, and relu
}

TEST(GraphHistory, TellsOfTypesThatChange) {
  const std::unique_ptr<Graph> graph =
      parse_graph("graph(%x: f32[n], %w: f32[4]) { %y = relu(%x) return %y }");
  GraphHistory history;
  history.record("as read", *graph);
  graph->first()->set_operand(0, graph->input(1));
  history.record("bound", *graph);
  const GraphStage& stage = history.stages().back();
  EXPECT_EQ(stage.added, std::vector<int64_t>());
  ASSERT_EQ(stage.retyped.size(), 2U);  // and the output
  EXPECT_EQ(stage.retyped[0].second, "f32[4]");
}

TEST(GraphHistory, TellsWhatFollowsFromConstantsAlone) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph main(%x: f32[4]) {
      %w: f32[4] = parameter(name="w", value=f32[4] {1, 2, 3, 4})
      %a = exp(%w)
      %b = neg(%x)
      %y = mul(%a, %b)
      return %y
    })");
  GraphHistory history;
  history.record("as read", *graph);
  EXPECT_EQ(ops_of(history, history.stages().back().fixed), (Ops{"parameter", "exp"}));
  Node *exp = graph->nodes()[1], *neg = graph->nodes()[2];
  const Value w = exp->operand(0);
  exp->set_operand(0, graph->input(0));
  neg->set_operand(0, w);
  history.record("exchanged", *graph);
  EXPECT_EQ(ops_of(history, history.stages().back().fixed), Ops{"neg"});
  EXPECT_EQ(ops_of(history, history.stages().back().unfixed), Ops{"exp"});
}

}  // namespace
}  // namespace tenon
