// ONNX nodes that come in as they are, and are written again.
#include "frontends/onnx_model.h"
#include "frontends/onnx_written.h"
#include "ops/registry.h"

namespace tenon::onnx {
namespace {

using namespace encode;

std::unique_ptr<Graph> read_keeping(const Bytes& node, int64_t opset, const std::string& domain = "") {
  register_ops();
  const TemporaryFolder folder;
  Messages opsets = {encode::opset(opset)};
  if (!domain.empty())
    opsets.push_back(encode::opset(1, domain));
  folder.write("m.onnx", model({.nodes = {node, encode::node("Relu", {"y"}, {"z"})},
                                .inputs = {value("x", kFloat, {2, 6})},
                                .outputs = {value("z", kFloat, {2, 6})}},
                               {}, opsets));
  return read_onnx(folder / "m.onnx", {.kept = {"y"}});
}

TEST(KeepOnnxNodes, ComeOutAsTheyCameIn) {
  const auto graph = read_keeping(node("LpNormalization", {"x"}, {"y"}, {int_attribute("axis", 1)}), 17);
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[2,6]");
  const Found found = written(*graph, {.wanted_opset = 17});
  EXPECT_EQ(found.nodes, "LpNormalization[axis](x) -> y\nRelu(y) -> z\n");
  EXPECT_EQ(found.opset, 17);
}

TEST(KeepOnnxNodes, BringTheirDomain) {
  const auto graph =
      read_keeping(node("BiasGelu", {"x", "x"}, {"y"}, {}, {.domain = "com.microsoft"}), 17, "com.microsoft");
  const TemporaryFolder folder;
  write_onnx(*graph, folder / "m.onnx");
  const Model model = read_model(folder / "m.onnx");
  EXPECT_EQ(model.proto.graph.node.front().domain, "com.microsoft");
  ASSERT_EQ(model.proto.opset_import.size(), 2u);
  EXPECT_EQ(model.proto.opset_import[1].domain, "com.microsoft");
  EXPECT_EQ(model.proto.opset_import[1].version, 1);
}

TEST(KeepOnnxNodes, AreRefusedInOpsetsThatHaveThemOtherwise) {
  const auto graph = read_keeping(node("ReduceL1", {"x"}, {"y"}, {ints_attribute("axes", {1})}), 17);
  const TemporaryFolder folder;
  expect_error<UnsupportedError>([&] { write_onnx(*graph, folder / "m.onnx", {.opset = 18}); },
                                 "ReduceL1 is kept unchanged, which no opset after 17 has, but 18 is needed");
  EXPECT_EQ(written(*graph).opset, 13);
}

TEST(KeepOnnxNodes, AreNotThoseWithNestedGraphs) {
  register_ops();
  const Bytes body =
      encode::graph({.nodes = {node("Neg", {"x"}, {"a"})}, .outputs = {value("a", kFloat, {2, 6})}});
  const TemporaryFolder folder;
  folder.write(
      "m.onnx",
      model({.nodes = {node("If", {"c"}, {"y"},
                            {graph_attribute("then_branch", body), graph_attribute("else_branch", body)})},
             .inputs = {value("c", kBool, {}), value("x", kFloat, {2, 6})},
             .outputs = {value("y", kFloat, {2, 6})}},
            {}, {encode::opset(17)}));
  EXPECT_TRUE(read_onnx(folder / "m.onnx", {.kept = {"y"}})->outputs()[0].node()->is("if"));
}

}  // namespace
}  // namespace tenon::onnx
