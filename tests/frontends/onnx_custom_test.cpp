// Ops of ONNX files that are not known: nodes are kept as they are.
#include "frontends/onnx_run.h"
#include "frontends/onnx_written.h"

namespace tenon::onnx {
namespace {

using namespace encode;

const NodeNames kAcme = {.name = "foo", .domain = "com.acme"};
const Messages kOpsets = {opset(17), opset(3, "com.acme")};
const Bytes kX = value("x", kFloat, {"n", 4}), kY = value("y", kFloat, {"n", 2});

Bytes acme(const GraphParts& parts) { return model(parts, {}, kOpsets); }

// y = Foo(x), whose output the graph declares.
GraphParts one_node(const Messages& attributes = {}) {
  return {.nodes = {node("Foo", {"x"}, {"y"}, attributes, kAcme)}, .inputs = {kX}, .outputs = {kY}};
}

// A file that is read and written.
class Rewritten {
 public:
  explicit Rewritten(const Bytes& bytes, const WriteOptions& options = {}) : graph_(import(bytes)) {
    write_onnx(*graph_, folder_ / "m.onnx", options);
    model_ = read_model(folder_ / "m.onnx");
  }

  const Graph& graph() const { return *graph_; }
  const GraphProto& proto() const { return model_.proto.graph; }
  std::string nodes() const { return listing(proto()); }
  std::string opsets() const {
    std::string text;
    for (const OperatorSetId& opset : model_.proto.opset_import)
      text += fmt::format("{} {}; ", opset.domain, opset.version);
    return text;
  }

 private:
  std::unique_ptr<Graph> graph_;
  const TemporaryFolder folder_;
  Model model_;
};

const NodeProto& node_of(const GraphProto& graph, std::string_view op_type) {
  const auto it = std::ranges::find(graph.node, op_type, &NodeProto::op_type);
  CHECK(it != graph.node.end(), "there is no {}", op_type);
  return *it;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// --- how they are kept

TEST(OnnxCustom, IsShownWithItsAttributes) {
  const std::unique_ptr<Graph> graph = import(acme(one_node({float_attribute("alpha", 0.1F)})));
  const std::string text = print(*graph);
  EXPECT_NE(
      text.find(R"(%y: f32[n,2] = custom([%x], op="Foo", domain="com.acme", version=3, types=["f32[*]"], )"
                R"(attributes=["alpha: float = 0.1"]))"),
      std::string::npos)
      << text;
  EXPECT_EQ(difference(*graph, *parse(text)), "");
}

TEST(OnnxCustom, IsNoBatchNormalizationByItsNameAlone) {
  const TemporaryFolder folder;
  const Bytes bytes = acme({.nodes = {node("BatchNormalization", {"x"}, {"y", "z"}, {}, kAcme)},
                            .inputs = {kX},
                            .outputs = {kY, value("z", kFloat, {"n"})}});
  const std::unique_ptr<Graph> graph = read_onnx(folder.write("m.onnx", bytes), {.gives_statistics = true});
  EXPECT_EQ(graph->outputs().size(), 2u);
}

TEST(OnnxCustom, IsWrittenWithAllThatItHad) {
  const Messages attributes = {
      float_attribute("f", 0.1F),
      int_attribute("i", -7),
      string_attribute("s", "say \"a: b = c\"\n"),
      string_attribute("binary", "\xff\x01"),
      floats_attribute("fs", {1.5F, -0.0F, 3e-41F}),
      ints_attribute("is", {1, -2}),
      ints_attribute("none", {}),
      strings_attribute("ss", {"a", ""}),
      tensor_attribute("t", tensor<float>("inner", {2}, {1, 2})),
      block(1, "tp") + block(14, tensor_type(kFloat, {2})) + number(20, 13),
      int_attribute("odd: name = 1", 5),
  };
  const Bytes bytes = acme(one_node(attributes));
  const Rewritten rewritten(bytes);
  EXPECT_EQ(rewritten.opsets(), " 13; com.acme 3; ");
  const NodeProto& node = node_of(rewritten.proto(), "Foo");
  EXPECT_EQ(node.domain, "com.acme");
  EXPECT_EQ(node.name, "foo");
  ASSERT_EQ(node.attribute.size(), attributes.size());
  for (const Bytes& attribute : attributes) {
    const ModelProto before = decode_model(std::as_bytes(std::span(bytes)));
    const auto& given =
        before.graph.node.front().attribute[static_cast<size_t>(&attribute - attributes.data())];
    const auto it = std::ranges::find(node.attribute, given.name, &AttributeProto::name);
    ASSERT_NE(it, node.attribute.end()) << given.name;
    EXPECT_EQ(it->type, given.type) << given.name;
    EXPECT_EQ(it->f, given.f) << given.name;
    EXPECT_EQ(it->i, given.i) << given.name;
    EXPECT_EQ(it->s, given.s) << given.name;
    EXPECT_EQ(it->floats, given.floats) << given.name;
    EXPECT_EQ(it->ints, given.ints) << given.name;
    EXPECT_EQ(it->strings, given.strings) << given.name;
    if (!given.tensors.empty() || !given.types.empty())
      EXPECT_EQ(text_of(it->message), text_of(given.message)) << given.name;
  }
}

TEST(OnnxCustom, KeepsThePlacesOfWhatIsLeftOut) {
  const Rewritten rewritten(
      acme({.nodes = {node("Foo", {"", "x", "", "x"}, {"", "a", "", "b"}, {}, kAcme),
                      node("Add", {"a", "b"}, {"y"})},
            .inputs = {kX},
            .outputs = {kY},
            .value_info = {value("a", kFloat, {"n", 2}), value("b", kFloat, {"n", 2})}}));
  EXPECT_EQ(rewritten.nodes(), "Foo(, x, , x) -> , a, , b\nAdd(a, b) -> y\n");
}

// Who reads the file again knows them by nothing else.
TEST(OnnxCustom, DeclaresItsTypesInTheFile) {
  const Bytes bytes = acme({.nodes = {node("Foo", {"x"}, {"a"}, {}, kAcme), node("Relu", {"a"}, {"y"})},
                            .inputs = {kX},
                            .outputs = {kY},
                            .value_info = {value("a", kFloat, {"n", 2})}});
  const Rewritten rewritten(bytes);
  ASSERT_EQ(rewritten.proto().value_info.size(), 1u);
  EXPECT_EQ(rewritten.proto().value_info.front().name, "a");
  EXPECT_EQ(difference(rewritten.graph(), *read_back(rewritten.graph())), "");
}

TEST(OnnxCustom, GivesWhatTheFileDeclares) {
  const std::unique_ptr<Graph> graph =
      import(acme({.nodes = {node("Foo", {"x"}, {"a", "b"}, {}, kAcme), node("Relu", {"a"}, {"y"})},
                   .inputs = {kX},
                   .outputs = {untyped("y"), untyped("b")},
                   .value_info = {value("a", tensor_type(kFloat)),
                                  value("b", sequence_type(tensor_type(kInt64, {2})))}}));
  EXPECT_EQ(fmt::format("{}", graph->outputs()[0].type()), "f32[*]");
  EXPECT_EQ(fmt::format("{}", graph->outputs()[1].type()), "seq<i64[2]>");
}

TEST(OnnxCustom, FollowsSizesThatAreBound) {
  const std::unique_ptr<Graph> graph = import(acme(one_node()));
  EXPECT_EQ(fmt::format("{}", graph->bind({{"n", 3}})->outputs()[0].type()), "f32[3,2]");
}

// The standard domain may have ops that are newer, older or an engine's own.
TEST(OnnxCustom, OfTheStandardDomainWantsItsOpset) {
  const Bytes bytes = model({.nodes = {node("Foo", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}});
  EXPECT_EQ(Rewritten(bytes).opsets(), " 17; ");
  EXPECT_EQ(Rewritten(bytes, {.opset = 20}).opsets(), " 20; ");
  const std::unique_ptr<Graph> graph = import(bytes);
  const TemporaryFolder folder;
  expect_error<UnsupportedError>([&] { write_onnx(*graph, folder / "m.onnx", {.opset = 15}); },
                                 "node \"y\": Foo needs opset 17, but opset 15 is asked for");
}

TEST(OnnxCustom, OfANameThatWeHaveIsNotTakenForOurs) {
  for (const std::string op : {"Pad", "ReduceMean", "MaxPool", "LSTM"}) {
    const Rewritten rewritten(
        acme({.nodes = {node(op, {"x", "x"}, {"y", "z"}, {ints_attribute("axes", {0})}, kAcme)},
              .inputs = {kX},
              .outputs = {kY},
              .value_info = {value("z", kFloat, {})}}));
    EXPECT_EQ(rewritten.nodes(), op + "[axes](x, x) -> y, z\n");
  }
}

// --- running

TEST(OnnxCustom, CannotBeComputed) {
  const std::unique_ptr<Graph> graph = import(acme(one_node()));
  const std::string message =
      "node \"foo\": com.acme.Foo is an op that Tenon does not know: it can be optimised around, but not "
      "computed";
  expect_error<UnsupportedError>([&] { evaluate(*graph, {f32({1, 4}, {1, 2, 3, 4})}); }, message);
}

TEST(OnnxCustom, MayStandInABranchThatIsNotTaken) {
  const Bytes then =
      graph({.nodes = {node("Foo", {"x"}, {"a"}, {}, kAcme)}, .outputs = {value("a", kFloat, {2})}});
  const Bytes otherwise = graph({.nodes = {node("Neg", {"x"}, {"b"})}, .outputs = {value("b", kFloat, {2})}});
  const Bytes bytes = acme(
      {.nodes = {node("If", {"c"}, {"y"},
                      {graph_attribute("then_branch", then), graph_attribute("else_branch", otherwise)})},
       .inputs = {value("x", kFloat, {2}), value("c", kBool, {})},
       .outputs = {untyped("y")}});
  expect_tensor(run(bytes, {f32({2}, {1, 2}), Tensor::scalar(false)}), f32({2}, {-1, -2}));
}

// --- what is refused

TEST(OnnxCustom, SaysWhatIsWrongWithItsText) {
  const auto write = [](const std::string& attributes) {
    const std::unique_ptr<Graph> graph =
        parse_graph("graph(%x: f32[2]) { %y: f32[2] = custom([%x], op=\"Foo\", types=[\"f32[*]\"], " +
                    attributes + ") return %y }");
    const TemporaryFolder folder;
    write_onnx(*graph, folder / "m.onnx");
  };
  expect_error<UserError>([&] { write("attributes=[\"a = 1\"]"); },
                          "node %y: custom: an attribute is \"a = 1\", but must be NAME: KIND = VALUE");
  expect_error<UserError>([&] { write("messages=[\"0g\"]"); },
                          "node %y: custom: a message is to be hexadecimal, but has 0g");
  expect_error<UserError>([&] { write("omitted_inputs=[5]"); },
                          "node %y: custom: it leaves out what has place 5, but there are 1 others");
}

}  // namespace
}  // namespace tenon::onnx
