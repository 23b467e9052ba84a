#include "ir/graph_text.h"
#include "ops/binary.h"
#include "ops/unary.h"

namespace tenon {
namespace {

using Problems = std::vector<std::string>;

class Lint : public testing::Test {
 protected:
  Lint() { register_ops(); }

  Graph graph{"g"};
  Value x = graph.add_input(Type::tensor(DType::F32, {2}), "x");
};

TEST_F(Lint, FindsAUseBeforeTheDefinition) {
  const Value a = relu(x), b = exp(a);
  graph.set_outputs({b});
  graph.move_before(b.node(), a.node());
  b.set_name("b");
  EXPECT_EQ(lint(graph), Problems{"node %b: exp uses a value before it is made, or from another graph"});
}

TEST_F(Lint, FindsATypeThatInferenceDoesNotGive) {
  const Value a = relu(x);
  graph.set_outputs({a});
  a.data()->type = Type::tensor(DType::F32, {3});
  EXPECT_EQ(lint(graph), Problems{"a relu node: relu: result 0 is f32[3], but inference gives f32[2]"});
}

TEST_F(Lint, FindsOperandsThatNoLongerFit) {
  const Value i = graph.add_input(Type::tensor(DType::I64, {2}), "i");
  const Value a = x + x;
  graph.set_outputs({a, i});
  a.node()->set_operand(1, i);
  EXPECT_EQ(lint(graph), Problems{"an add node: add: b is i64[2], but must have the dtype of a, f32"});
}

TEST_F(Lint, FindsTwoInputsOfOneName) {
  graph.add_input(Type::tensor(DType::F32, {2}), "x");
  graph.set_outputs({x});
  EXPECT_EQ(lint(graph), Problems{"graph g: two inputs are named x"});
}

TEST_F(Lint, AcceptsATypeThatSaysMoreThanInference) {
  const Value n = graph.add_input(Type::tensor(DType::F32, {Dim::symbol("n")}), "n");
  const Value m = graph.add_input(Type::tensor(DType::F32, {Dim::symbol("m")}), "m");
  const Value sum = n + m;
  sum.refine_type(Type::tensor(DType::F32, {7}));
  graph.set_outputs({sum});
  EXPECT_EQ(to_string(sum.type()), "f32[7]");
  EXPECT_EQ(lint(graph), Problems());
}

}  // namespace
}  // namespace tenon
