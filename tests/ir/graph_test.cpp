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

TEST_F(GraphEdits, InsertAfterKeepsTheOrderOfWhatIsMade) {
  const Value a = exp(x);
  graph.set_outputs({a});
  {
    const InsertAfter here(x);
    sin(x);
    cos(x);
  }
  {
    const InsertAfter here(a);
    sqrt(a);
  }
  std::vector<std::string_view> ops;
  for (const Node* node : graph.nodes())
    ops.push_back(node->op().name);
  EXPECT_EQ(ops, (std::vector<std::string_view>{"sin", "cos", "exp", "sqrt"}));
}

TEST_F(GraphEdits, AnInsertionPointOutlivesItsNode) {
  const Value a = exp(x), b = sin(x);
  graph.set_outputs({b});
  const InsertBefore outer(a.node());
  {
    const InsertBefore inner(b.node());
    graph.erase(a.node());
  }
  const Value c = cos(x);
  EXPECT_EQ(graph.nodes(), (std::vector<Node*>{c.node(), b.node()}));
}

TEST_F(GraphEdits, AValueCanBeWrapped) {
  const Value a = exp(x);
  graph.set_outputs({a, a});
  const Value wrapped = relu(a);
  a.replace_all_uses(wrapped);
  EXPECT_EQ(wrapped.node()->in("x"), a);
  EXPECT_EQ(graph.outputs(), (std::vector<Value>{wrapped, wrapped}));
}

TEST_F(GraphEdits, UsersAreEachThereOnceInOrder) {
  const Value a = exp(x), b = a * a, c = relu(a);
  graph.set_outputs({c, b, a});
  EXPECT_EQ(a.users(), (std::vector<Node*>{b.node(), c.node(), graph.return_node()}));
}

TEST_F(GraphEdits, OrderHoldsHoweverManyNodesAreSqueezedIn) {
  const Value a = exp(x), b = sin(x);
  graph.set_outputs({a, b});
  const InsertAfter here(a);
  for (int i = 0; i < 100; ++i) {
    const InsertAfter closer(a);
    cos(x);
  }
  const std::vector<Node*> nodes = graph.nodes();
  for (size_t i = 1; i < nodes.size(); ++i)
    EXPECT_TRUE(nodes[i - 1]->comes_before(*nodes[i])) << i;
}

TEST_F(GraphEdits, TypesAndKnownElementsFollow) {
  const auto resized = parse_graph(R"(
    graph(%x: f32[n], %y: f32[4]) {
      %a = exp(%x)
      %s = shape(%a)
      %z = constant(value=f32[] {0})
      %r = broadcast(%z, %s)
      return %r
    })");
  EXPECT_EQ(to_string(resized->outputs()[0].type()), "f32[n]");
  Node* const exponential = resized->first();
  exponential->set_operand(0, resized->input(1));
  EXPECT_EQ(to_string(resized->outputs()[0].type()), "f32[4]");
  EXPECT_EQ(lint(*resized), std::vector<std::string>());
}

TEST_F(GraphEdits, ReplaceHandsOnNamesAndSources) {
  graph.set_current_sources({"/Exp"});
  const Value a = exp(x);
  a.set_name("a");
  graph.set_current_sources({});
  graph.set_outputs({a});
  const Value b = sin(x);
  graph.replace(a.node(), {b});
  EXPECT_EQ(b.name(), "a");
  EXPECT_EQ(b.node()->describe(), "node \"/Exp\"");
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

TEST_F(GraphEdits, SourcesLastAsLongAsWhatSetThem) {
  graph.set_current_sources({"/layer"});
  {
    const WithSources none(graph, {});
    EXPECT_EQ(exp(x).node()->sources(), std::vector<std::string>());
    Node* const named = exp(x).node();
    named->set_sources({"/layer/Exp"});
    const WithSources same(*named);
    EXPECT_EQ(exp(x).node()->sources(), (std::vector<std::string>{"/layer/Exp"}));
  }
  EXPECT_EQ(exp(x).node()->sources(), (std::vector<std::string>{"/layer"}));
}

TEST_F(GraphEdits, TheGateRefusesWhatTheDeclarationLacks) {
  expect_error<UserError>([&] { graph.create("relu", {{"x", x}, {"x", x}}); }, "relu: x is given twice");
  expect_error<UserError>([&] { graph.create("relu", {}); }, "relu: x is missing");
  expect_error<UserError>(
      [&] {
        graph.create("relu", {{"x", x}}, {{"axis", 1}});
      },
      "relu: there is no operand or attribute axis");
  expect_error<UserError>(
      [&] {
        graph.create("reduce_sum", {{"x", x}}, {{"axis", Attribute::Ints{1}}});
      },
      "reduce_sum: there is no operand or attribute axis\n  hint: did you mean axes?");
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
