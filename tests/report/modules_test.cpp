#include "report/modules.h"

#include <gtest/gtest.h>

#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {
namespace {

class ModulesOf : public ::testing::Test {
 protected:
  void SetUp() override { register_ops(); }

  // Of a chain of relus that have these names.
  static Modules of_names(const std::vector<std::string>& names) {
    Graph graph;
    Value value = graph.add_input(Type::tensor(DType::F32, {Dim(2)}), "x");
    for (const std::string& name : names) {
      const WithSources sources(graph, {name});
      value = graph.create("relu", {{"x", value}})->result();
    }
    graph.set_outputs({value}, {"y"});
    return Modules(graph);
  }
};

TEST_F(ModulesOf, AreInTheNamesOfNodes) {
  const Modules modules = of_names({"/encoder/layer.0/MatMul", "encoder.layer.1/linear", "Relu", "/Add"});
  EXPECT_EQ(modules.of({"/encoder/layer.0/MatMul"}), "encoder/layer.0");
  EXPECT_EQ(modules.of({"encoder.layer.1/linear"}), "encoder/layer/1");
  EXPECT_EQ(modules.of({"/Add"}), "");
  EXPECT_EQ(modules.of({"Relu"}), "");  // between encoder/layer/1 and the top level
  EXPECT_EQ(modules.of({"unknown"}), "");
  EXPECT_EQ(modules.of({}), "");
}

TEST_F(ModulesOf, SeveralNodesAreWhatTheirModulesHaveInCommon) {
  const Modules modules = of_names({"/a/b/x", "/a/b/c/y", "/a/bb/z"});
  EXPECT_EQ(modules.of({"/a/b/x", "/a/b/c/y"}), "a/b");
  EXPECT_EQ(modules.of({"/a/b/x", "/a/bb/z"}), "a");
}

TEST_F(ModulesOf, ANodeWithoutOneLiesBetweenItsNeighbours) {
  const Modules modules = of_names({"/a/b/x", "softmax", "/a/c/y", "gelu", "/d/z"});
  EXPECT_EQ(modules.of({"softmax"}), "a");
  EXPECT_EQ(modules.of({"gelu"}), "");
  const Modules nested = of_names({"first", "/m/a/x", "/m/b/y", "last"});
  EXPECT_EQ(nested.of({"first"}), "m");
  EXPECT_EQ(nested.of({"last"}), "m");
}

TEST_F(ModulesOf, AreInTheNamesOfParameters) {
  const std::unique_ptr<Graph> graph = parse(R"(
    graph main(%x: f32[2]) {
      %encoder.fc.weight: f32[2] = parameter(name="encoder.fc.weight", value=f32[2] {1, 2})
      %a = mul(%x, %encoder.fc.weight)
      %y = relu(%a)
      %encoder.out.bias: f32[2] = parameter(name="encoder.out.bias", value=f32[2] {1, 2})
      %z = add(%y, %encoder.out.bias)
      return %z
    })");
  name_nodes(*graph);
  const Modules modules(*graph);
  EXPECT_EQ(modules.of({"%a mul"}), "encoder/fc");
  EXPECT_EQ(modules.of({"%y relu"}), "encoder");
  EXPECT_EQ(modules.of({"%z add"}), "encoder/out");
}

TEST_F(ModulesOf, NodesKeepTheNamesThatTheyHave) {
  Graph graph;
  const Value x = graph.add_input(Type::tensor(DType::F32, {Dim(2)}), "x");
  const Node* first = graph.create("relu", {{"x", x}});
  const WithSources sources(graph, {"mine"});
  const Node* second = graph.create("relu", {{"x", first->result()}});
  graph.set_outputs({second->result()}, {"y"});
  name_nodes(graph);
  EXPECT_EQ(first->sources(), std::vector<std::string>{"%0 relu"});
  EXPECT_EQ(second->sources(), std::vector<std::string>{"mine"});
}

TEST_F(ModulesOf, PathsAreCutAtComponents) {
  EXPECT_EQ(cut_module("a/bc/d", 1), "a");
  EXPECT_EQ(cut_module("a/bc/d", 2), "a/bc");
  EXPECT_EQ(cut_module("a/bc/d", 7), "a/bc/d");
  EXPECT_EQ(cut_module("", 2), "");
  EXPECT_EQ(common_module("a/b", "a/b"), "a/b");
  EXPECT_EQ(common_module("a/b", "a/b/c"), "a/b");
  EXPECT_EQ(common_module("ab", "ac"), "");
  EXPECT_EQ(common_module("", "a"), "");
}

}  // namespace
}  // namespace tenon
