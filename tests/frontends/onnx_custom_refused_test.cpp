// Nodes of ops that are not known, and that cannot be kept either.
#include "frontends/onnx_run.h"

namespace tenon::onnx {
namespace {

using namespace encode;

const NodeNames kAcme = {.name = "foo", .domain = "com.acme"};
const Bytes kX = value("x", kFloat, {"n", 4}), kY = value("y", kFloat, {"n", 2});

Bytes acme(const GraphParts& parts) { return model(parts, {}, {opset(17), opset(3, "com.acme")}); }

// y = Foo(x), whose output the graph declares.
GraphParts one_node(const Messages& attributes = {}) {
  return {.nodes = {node("Foo", {"x"}, {"y"}, attributes, kAcme)}, .inputs = {kX}, .outputs = {kY}};
}

TEST(OnnxCustomRefused, NeedsDeclaredTypes) {
  const std::string hint =
      "\n  hint: an op that is not known is kept as it is where the file declares, as value_info, which "
      "tensors "
      "its outputs are";
  refuse<UnsupportedError>(
      acme({.nodes = {node("Foo", {"x"}, {"a", "b"}, {}, kAcme), node("Add", {"a", "b"}, {"y"})},
            .inputs = {kX},
            .outputs = {kY},
            .value_info = {value("a", kFloat, {"n", 2})}}),
      "1 of its ops is not supported\n  com.acme.Foo: 1 node, \"foo\"" + hint);
}

TEST(OnnxCustomRefused, SaysWhatCannotBeKept) {
  refuse<UnsupportedError>(
      acme(one_node({graph_attribute("body", graph({.outputs = {untyped("x")}}))})),
      R"(node "foo": Foo: attribute body is a graph, which an op that is not known cannot have)");
  const Bytes outside = block(8, "t") + number(2, kFloat) + number(1, 2) + number(14, 1) +
                        block(13, block(1, "location") + block(2, "weights"));
  refuse<UnsupportedError>(
      acme(one_node({tensor_attribute("t", outside)})),
      R"(node "foo": Foo: attribute t is a tensor in another file, which an op that is not known cannot have)");
  refuse<UnsupportedError>(
      acme({.nodes = {node("Foo", {"x"}, {""}, {}, kAcme)}, .inputs = {kX}, .outputs = {untyped("x")}}),
      R"(node "foo": Foo: it gives nothing, and what an op that is not known does besides cannot be kept)");
  refuse(model(one_node()),
         R"(node "foo": Foo: the model does not say which version of domain "com.acme" it uses)");
}

}  // namespace
}  // namespace tenon::onnx
