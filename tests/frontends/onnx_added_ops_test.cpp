// Ops that a program adds are read from ONNX files, and written there.
#include "frontends/onnx/added_ops.h"
#include "frontends/onnx/proto.h"
#include "frontends/onnx/write/write.h"
#include "frontends/onnx_run.h"
#include "ir/equal.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

using namespace encode;

// factor · x + bias, as often as `times` says.
Data eval_scale(const Call& c) {
  const Tensor& x = c.in("x");
  const std::vector<double> bias = c.has("bias") ? widen<double>(c.in("bias")) : std::vector<double>{0};
  const double factor = c.attr("factor");
  const int64_t times = c.attr("times");
  std::vector<double> y = widen<double>(x);
  for (double& element : y)
    for (int64_t i = 0; i < times; ++i)
      element = element * factor + bias.at(0);
  return {narrow<double>(x.dtype(), x.extents(), std::span<const double>(y))};
}

Types infer_all(const Node& n) {
  Types types;
  for (Value x : n.ins("x"))
    types.push_back(x.type());
  return types;
}
Data eval_all(const Call& c) {
  const std::span<const Datum> x = c.all("x");
  return {x.begin(), x.end()};
}

// Once for all tests of this program.
void add_ops() {
  static const bool once = [] {
    add_op({.name = "test_scale",
            .doc = "factor · x + bias",
            .operands = {{"x", "T"}, {"bias", "T", Arity::Optional}},
            .attributes = {{"factor", AttributeKind::Float, "", 2.0}, {"times", AttributeKind::Int, "", 1}},
            .results = {{"y", "T"}},
            .types = {{"T", Floats}},
            .infer = [](const Node& n) { return Types{n.in("x").type()}; },
            .eval = eval_scale},
           {.domain = "com.acme", .op_type = "Scale", .version = 5});
    add_op({.name = "test_all",
            .doc = "its operands",
            .operands = {{"x", "any", Arity::Many}},
            .results = {{"y", "any", Arity::Many}},
            .infer = infer_all,
            .eval = eval_all},
           {.domain = "com.acme", .op_type = "All"});
    add_op({.name = "test_nameless",
            .doc = "x",
            .operands = {{"x", "T"}},
            .results = {{"y", "T"}},
            .infer = [](const Node& n) { return Types{n.in("x").type()}; },
            .eval = [](const Call& c) { return Data{c.in("x")}; }});
    check_added_ops();
    return true;
  }();
  static_cast<void>(once);
}

Bytes scale(const Messages& attributes, const Names& inputs = {"x", "b"}) {
  return model({.nodes = {node("Scale", inputs, {"y"}, attributes, {.name = "n", .domain = "com.acme"})},
                .inputs = {value("x", kFloat, {2}), value("b", kFloat, {1})},
                .outputs = {untyped("y")}},
               {}, {opset(17), opset(5, "com.acme")});
}

const Data kInputs = {f32({2}, {1, 2}), f32({1}, {10})};

TEST(OnnxAddedOps, AreReadByTheNamesOfTheirAttributes) {
  add_ops();
  expect_tensor(run(scale({}), kInputs), f32({2}, {12, 14}));
  expect_tensor(run(scale({float_attribute("factor", 3), int_attribute("times", 2)}), kInputs),
                f32({2}, {49, 58}));
  expect_tensor(run(scale({}, {"x"}), kInputs), f32({2}, {2, 4}));
  expect_tensor(run(scale({}, {"x", ""}), kInputs), f32({2}, {2, 4}));
}

TEST(OnnxAddedOps, AreWrittenByTheirNames) {
  add_ops();
  const std::unique_ptr<Graph> graph = import(scale({int_attribute("times", 2)}));
  const TemporaryFolder folder;
  write_onnx(*graph, folder / "m.onnx");
  const Model model = read_model(folder / "m.onnx");
  const NodeProto& node = model.proto.graph.node.front();
  EXPECT_EQ(node.op_type, "Scale");
  EXPECT_EQ(node.domain, "com.acme");
  EXPECT_EQ(fmt::format("{}", fmt::join(node.input, ", ")), "x, b");
  ASSERT_EQ(node.attribute.size(), 2u);
  EXPECT_EQ(node.attribute[0].name, "factor");
  EXPECT_EQ(node.attribute[0].f, 2);
  EXPECT_EQ(node.attribute[1].name, "times");
  EXPECT_EQ(node.attribute[1].i, 2);
  ASSERT_EQ(model.proto.opset_import.size(), 2u);
  EXPECT_EQ(model.proto.opset_import.back().domain, "com.acme");
  EXPECT_EQ(model.proto.opset_import.back().version, 5);
  EXPECT_EQ(difference(*graph, *read_onnx(folder / "m.onnx")), "");
}

TEST(OnnxAddedOps, MayTakeAndGiveAnyNumber) {
  add_ops();
  const Bytes bytes = model({.nodes = {node("All", {"x", "b"}, {"p", "q"}, {}, {.domain = "com.acme"})},
                             .inputs = {value("x", kFloat, {2}), value("b", kFloat, {1})},
                             .outputs = {untyped("q"), untyped("p")}},
                            {}, {opset(17), opset(1, "com.acme")});
  const Data results = run_all(bytes, kInputs);
  expect_tensor(results[0], kInputs[1].tensor());
  expect_tensor(results[1], kInputs[0].tensor());
}

TEST(OnnxAddedOps, WithoutANameInOnnxAreNotWritten) {
  add_ops();
  const std::unique_ptr<Graph> graph = parse_graph("graph(%x: f32[2]) { %y = test_nameless(%x) return %y }");
  const TemporaryFolder folder;
  expect_error<UnsupportedError>([&] { write_onnx(*graph, folder / "m.onnx"); },
                                 "node %y: ONNX has no op for test_nameless as it is used here");
}

TEST(OnnxAddedOps, SayWhatANodeDoesNotFit) {
  add_ops();
  onnx::refuse(
      scale({float_attribute("facto", 3)}),
      "node \"n\": test_scale: there is no operand or attribute facto\n  hint: did you mean factor?");
  onnx::refuse(scale({int_attribute("factor", 3)}),
               R"(node "n": Scale: attribute factor must be a float, but is an int)");
  onnx::refuse(scale({}, {"x", "b", "b"}), R"(node "n": Scale: it has 3 inputs, but takes no more than 2)");
  onnx::refuse(scale({}, {""}), R"(node "n": Scale: input 0 is missing)");
}

}  // namespace
}  // namespace tenon::onnx
