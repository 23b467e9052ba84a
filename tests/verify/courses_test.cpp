// The models that courses on graph optimisation teach with, by name: what each pass makes of them.
#include <gtest/gtest.h>

#include "frontends/builtin/builtin.h"
#include "ir/evaluate.h"
#include "ir/lint.h"
#include "ops/registry.h"
#include "passes/pipeline.h"
#include "tensor/wide.h"
#include "verify/verify.h"

namespace tenon {
namespace {

std::unique_ptr<Graph> model(std::string_view name) {
  register_ops();
  return builtin::make_model(std::string(name));
}

int64_t count(const Graph& graph, std::string_view op) {
  int64_t count = 0;
  for (const Node* node : graph.nodes())
    count += node->is(op);
  return count;
}

// The model optimised, after its four checks held for every pass.
std::unique_ptr<Graph> optimised(std::string_view name) {
  std::unique_ptr<Graph> graph = model(name);
  for (const PassVerification& pass : verify_pipeline(*graph))
    EXPECT_FALSE(pass.failed()) << name << ": " << pass.pass << ": " << pass.numbers.detail
                                << pass.gradients.detail;
  Journal journal;
  optimize(*graph, journal, {.lint_everything = true});
  return graph;
}

TEST(Courses, UnoptimizedModelShrinksPassByPass) {
  const std::unique_ptr<Graph> graph = model("unoptimized");
  EXPECT_EQ(count_nodes(*graph), 7);
  Journal journal;
  std::vector<std::pair<std::string, int64_t>> nodes;
  optimize(*graph, journal, {.after_pass = [&](const Pass& pass, const Graph& after) {
    nodes.emplace_back(pass.name, count_nodes(after));
  }});
  ASSERT_GE(nodes.size(), 2u);
  EXPECT_EQ(nodes[0], std::pair(std::string("simplify"), int64_t{6}));
  EXPECT_EQ(nodes[1], std::pair(std::string("merge-equal"), int64_t{5}));
}

TEST(Courses, BatchNormsAreFoldedIntoConvolutions) {
  const std::pair<std::string_view, int64_t> models[] = {
      {"simple_conv_bn", 1},    {"conv_bn_nobias", 1}, {"conv_bn_noaffine", 1}, {"multi_conv_bn", 2},
      {"depthwise_conv_bn", 2}, {"residual_conv", 1},  {"resnet_block", 3}};
  for (const auto& [name, convolutions] : models) {
    const std::unique_ptr<Graph> graph = optimised(name);
    EXPECT_EQ(count(*graph, "batch_norm"), 0) << name;
    EXPECT_EQ(count(*graph, "conv"), convolutions) << name;
  }
  const std::unique_ptr<Graph> transposed = optimised("conv_transpose_bn");
  EXPECT_EQ(count(*transposed, "batch_norm"), 0);
  EXPECT_EQ(count(*transposed, "conv_transpose"), 1);
}

TEST(Courses, ASecondUseStopsTheFold) {
  const std::unique_ptr<Graph> graph = optimised("conv_multi_use");
  EXPECT_EQ(count(*graph, "batch_norm"), count(*model("conv_multi_use"), "batch_norm"));
}

TEST(Courses, AConvolutionAloneStaysAsItIs) { EXPECT_EQ(count(*optimised("conv_without_bn"), "conv"), 1); }

TEST(Courses, CommonSubexpressionsAndDeadCodeGo) {
  EXPECT_LT(count_nodes(*optimised("has_cse")), count_nodes(*model("has_cse")));
  EXPECT_EQ(count(*optimised("has_cse"), "relu"), 1);
  const std::unique_ptr<Graph> dead = optimised("has_dead_code");
  for (const Node* node : dead->nodes())
    for (Value result : node->results())
      EXPECT_GT(result.use_count(), 0);
}

TEST(Courses, ConstantsAreComputedOnce) {
  const std::unique_ptr<Graph> graph = optimised("with_constants");
  for (const Node* node : graph->nodes()) {
    const std::vector<Value> operands = node->operands();
    const auto is_constant = [](Value operand) {
      return !operand.is_input() && operand.node()->is("constant");
    };
    EXPECT_TRUE(operands.empty() || !std::all_of(operands.begin(), operands.end(), is_constant));
  }
}

TEST(Courses, AttentionIsFound) {
  EXPECT_EQ(count(*optimised("attention"), "attention"), 1);
  EXPECT_EQ(count(*optimised("mha_causal"), "attention"), 1);
}

TEST(Courses, AnEditedGraphLintsAndRuns) {
  const std::unique_ptr<Graph> graph = model("tiny");
  for (Node* node : graph->nodes())
    if (node->is("relu")) {
      const InsertBefore here(node);
      graph->replace(node, graph->create("leaky_relu", {{"x", node->in("x")}}, {{"alpha", 0.1}})->results());
    }
  EXPECT_EQ(lint(*graph), std::vector<std::string>());
  EXPECT_EQ(count(*graph, "relu"), 0);
  const Tensor x = narrow<double>(DType::F32, {1, 4}, {{1, -1, 0.5, 2}});
  const std::vector<double> was = widen<double>(evaluate(*model("tiny"), {x}).front().tensor()),
                            is = widen<double>(evaluate(*graph, {x}).front().tensor());
  bool is_negative_somewhere = false;
  for (size_t i = 0; i < was.size(); ++i) {
    is_negative_somewhere |= is[i] < 0;
    EXPECT_TRUE(was[i] == is[i] || (was[i] == 0 && is[i] < 0));
  }
  EXPECT_TRUE(is_negative_somewhere);
}

}  // namespace
}  // namespace tenon
