#include "ir/graph.h"

#include "ir/graph_text.h"
#include "ops/binary.h"
#include "ops/data.h"
#include "ops/unary.h"

namespace tenon {
namespace {

class GraphEdits : public testing::Test {
 protected:
  GraphEdits() { register_ops(); }

  Graph graph{"g"};
  Value x = graph.add_input(Type::tensor(DType::F32, {Dim::symbol("n"), 4}), "x");
};

TEST_F(GraphEdits, CountUses) {
  const Value y = relu(x);
  const Value z = y + y;
  graph.set_outputs({z, y});
  EXPECT_EQ(y.use_count(), 3);
  EXPECT_TRUE(x.has_one_use());
  EXPECT_EQ(x.users(), std::vector<Node*>{y.node()});
  EXPECT_EQ(graph.return_node()->operands(), (std::vector<Value>{z, y}));
}

TEST_F(GraphEdits, ReplaceReluByAnotherOp) {
  const Value a = relu(x);
  graph.set_outputs({sigmoid(a)});
  for (Node* node : graph.nodes())
    if (node->is("relu")) {
      const InsertBefore here(node);
      graph.replace(node, {tanh(node->in("x"))});
    }
  EXPECT_EQ(difference(graph, *parse_graph(R"(
    graph(%x: f32[n,4]) {
      %0 = tanh(%x)
      %1 = sigmoid(%0)
      return %1
    })")),
            "");
}

TEST_F(GraphEdits, EraseRefusesAValueInUse) {
  const Value y = relu(x);
  graph.set_outputs({y});
  EXPECT_THROW(graph.erase(y.node()), InternalError);
  graph.set_outputs({x});
  graph.erase(y.node());
  EXPECT_EQ(graph.node_count(), 0);
  EXPECT_EQ(x.use_count(), 1);
}

TEST_F(GraphEdits, MoveBeforeKeepsTheRestInOrder) {
  const Value a = exp(x), b = sin(x), c = cos(x);
  graph.set_outputs({a, b, c});
  graph.move_before(c.node(), a.node());
  EXPECT_EQ(graph.nodes(), (std::vector<Node*>{c.node(), a.node(), b.node()}));
  EXPECT_EQ(lint(graph), std::vector<std::string>());
}

TEST_F(GraphEdits, InlineCopiesTheCallee) {
  const auto callee = parse_graph("graph(%a: f32[n,4]) { %0 = relu(%a) %1 = add(%0, %a) return %1 }");
  graph.set_outputs(graph.inline_graph(*callee, {exp(x)}));
  EXPECT_EQ(difference(graph, *parse_graph(R"(
    graph(%x: f32[n,4]) { %0 = exp(%x) %1 = relu(%0) %2 = add(%1, %0) return %2 })")),
            "");
}

TEST_F(GraphEdits, InlineGivesTheCalleeTheSizesOfTheArguments) {
  const auto callee = parse_graph(R"(
    graph(%a: f32[k,m]) {
      %found: i64[2,d0] = nonzero(%a)
      %0 = shape(%found)
      return %a, %found
    })");
  const auto other = parse_graph("graph(%a: f32[8,n], %b: i64[d0]) { return %a, %b }");
  other->set_outputs(other->inline_graph(*callee, {other->input(0)}));
  // d0 means something else here.
  EXPECT_EQ(to_string(other->outputs()[0].type()), "f32[8,n]");
  EXPECT_EQ(to_string(other->outputs()[1].type()), "i64[2,d1]");
  EXPECT_EQ(lint(*other), std::vector<std::string>());
}

TEST_F(GraphEdits, BindGivesSymbolsTheirSizes) {
  const auto symbolic = parse_graph(R"(
    graph(%a: f32[n,m]) {
      %s = shape(%a)
      %two = constant(value=i64[] {2})
      %t = mul(%s, %two)
      %z = constant(value=f32[] {0})
      %y = broadcast(%z, %t)
      return %y
    })");
  EXPECT_EQ(to_string(symbolic->outputs()[0].type()), "f32[2*n,2*m]");
  const auto bound = symbolic->bind({{"n", 3}});
  EXPECT_EQ(to_string(bound->outputs()[0].type()), "f32[6,2*m]");
  EXPECT_EQ(lint(*bound), std::vector<std::string>());
}

TEST_F(GraphEdits, NewNodesCarryTheCurrentSources) {
  graph.set_current_sources({"/layer/Relu"});
  EXPECT_EQ(relu(x).node()->describe(), "node \"/layer/Relu\"");
}

TEST_F(GraphEdits, TheGateRefusesWhatTheDeclarationLacks) {
  expect_error<UserError>([&] { graph.create("relu", {}); }, "relu: x is missing");
  expect_error<UserError>(
      [&] {
        graph.create("relu", {{"x", x}}, {{"axis", 1}});
      },
      "relu: there is no attribute axis");
  expect_error<UserError>(
      [&] {
        graph.create("reduce_sum", {{"x", x}}, {{"axis", Attribute::Ints{1}}});
      },
      "reduce_sum: there is no attribute axis\n  hint: did you mean axes?");
  expect_error<UserError>(
      [&] {
        graph.create("reduce_sum", {{"x", x}}, {{"axes", "one"}});
      },
      "reduce_sum: attribute axes must be of kind ints, but is of kind string");
  expect_error<UserError>(
      [&] {
        graph.create("reduce_sum", {{"x", x}});
      },
      "reduce_sum: attribute axes is missing");
  EXPECT_EQ(graph.node_count(), 0) << "a node that was refused leaves no trace";
  EXPECT_EQ(x.use_count(), 0);
}

TEST_F(GraphEdits, UnknownDimensionsGetFreshSymbolsThatClashWithNone) {
  const Value d0 = graph.add_input(Type::tensor(DType::F32, {Dim::symbol("d0")}), "y");
  const Value m = graph.add_input(Type::tensor(DType::F32, {Dim::symbol("m")}), "z");
  EXPECT_EQ(to_string((d0 + m).type()), "f32[d1]");
}

TEST(LargeGraphs, AreNotQuadratic) {
  register_ops();
  Graph graph("chain");
  Value x = graph.add_input(Type::tensor(DType::F32, {4}), "x");
  const Value shared = x;
  for (int i = 0; i < 20000; ++i)
    x = relu(x) + shared;
  graph.set_outputs({x});
  EXPECT_EQ(graph.node_count(), 40000);
  EXPECT_EQ(lint(graph), std::vector<std::string>());
  const auto again = parse(print(graph));
  EXPECT_EQ(structural_hash(*again), structural_hash(graph));
  EXPECT_EQ(difference(*graph.clone(), graph), "");
  shared.replace_all_uses(graph.add_input(Type::tensor(DType::F32, {4}), "other"));
  EXPECT_EQ(shared.use_count(), 0);
}

}  // namespace
}  // namespace tenon
