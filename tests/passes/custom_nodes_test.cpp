// Models with ops that are not known are optimised around them.
#include "frontends/onnx_model.h"
#include "frontends/onnx_written.h"
#include "passes/expect_pass.h"
#include "passes/pipeline.h"

namespace tenon::onnx {
namespace {

using namespace encode;

const NodeNames kAcme = {.domain = "com.acme"};
const Bytes kX = value("x", kFloat, {"n", 4}), kY = value("y", kFloat, {"n", 2});

Bytes acme(const GraphParts& parts) { return model(parts, {}, {opset(17), opset(3, "com.acme")}); }

// A file that is read, optimised and written.
class Optimised {
 public:
  explicit Optimised(const Bytes& bytes) {
    register_ops();
    const std::unique_ptr<Graph> graph = read_onnx(folder_.write("before.onnx", bytes));
    Journal journal;
    optimize(*graph, journal);
    EXPECT_EQ(lint(*graph), std::vector<std::string>());
    write_onnx(*graph, folder_ / "m.onnx");
    model_ = read_model(folder_ / "m.onnx");
  }

  const ModelProto& proto() const { return model_.proto; }
  std::string nodes() const { return listing(model_.proto.graph); }

 private:
  const TemporaryFolder folder_;
  Model model_;
};

TEST(CustomNodes, IsOptimisedAround) {
  const Optimised optimised(
      acme({.nodes = {node("Identity", {"x"}, {"i"}), node("Relu", {"i"}, {"r"}), node("Relu", {"r"}, {"s"}),
                      node("Foo", {"s"}, {"a"}, {}, kAcme), node("Neg", {"a"}, {"b"}),
                      node("Neg", {"b"}, {"c"}), node("Relu", {"c"}, {"y"})},
            .inputs = {kX},
            .outputs = {kY},
            .value_info = {value("a", kFloat, {"n", 2})}}));
  EXPECT_EQ(optimised.nodes(), "Relu(x) -> r\nFoo(r) -> a\nRelu(a) -> y\n");
}

TEST(CustomNodes, IsNotMergedAndNotComputedOfConstants) {
  const Optimised optimised(
      acme({.nodes = {node("Foo", {"w"}, {"a"}, {}, kAcme), node("Foo", {"w"}, {"b"}, {}, kAcme),
                      node("Add", {"a", "b"}, {"y"})},
            .outputs = {value("y", kFloat, {2})},
            .initializers = {tensor<float>("w", {2}, {1, 2})},
            .value_info = {value("a", kFloat, {2}), value("b", kFloat, {2})}}));
  EXPECT_EQ(optimised.nodes(), "Foo(w) -> a\nFoo(w) -> b\nAdd(a, b) -> y\n");
}

// ONNX says nothing of effects: what nothing uses need not be.
TEST(CustomNodes, IsRemovedWhereNothingUsesIt) {
  const Optimised optimised(acme({.nodes = {node("Foo", {"x"}, {"a"}, {}, kAcme), node("Relu", {"x"}, {"y"})},
                                  .inputs = {kX},
                                  .outputs = {untyped("y")},
                                  .value_info = {value("a", kFloat, {"n", 2})}}));
  EXPECT_EQ(optimised.nodes(), "Relu(x) -> y\n");
  EXPECT_EQ(optimised.proto().opset_import.size(), 1u);
}

TEST(CustomNodes, StaysInTheIterationsOfALoop) {
  const Bytes body =
      graph({.nodes = {node("Foo", {"x"}, {"a"}, {}, kAcme), node("Add", {"v", "a"}, {"w"}),
                       node("Identity", {"c"}, {"d"})},
             .inputs = {value("i", kInt64, {}), value("c", kBool, {}), value("v", kFloat, {2})},
             .outputs = {untyped("d"), untyped("w")},
             .value_info = {value("a", kFloat, {2})}});
  const Optimised optimised(
      acme({.nodes = {node("Loop", {"many", "", "x"}, {"y"}, {graph_attribute("body", body)})},
            .inputs = {value("x", kFloat, {2})},
            .outputs = {untyped("y")},
            .initializers = {tensor<int64_t>("many", {}, {1000})}}));
  const NodeProto& loop = optimised.proto().graph.node.front();
  ASSERT_EQ(loop.op_type, "Loop");
  const GraphProto& written = loop.attribute.front().graphs.front();
  EXPECT_EQ(listing(written), "Foo(x) -> a\nAdd(v, a) -> w\nIdentity(d) -> output\n");
  EXPECT_EQ(written.value_info.size(), 1u);
}

TEST(CustomNodes, AreLeftAloneByPassesThatMoveOthers) {
  expect_unchanged(merge_equal, R"(graph g(%x: f32[2]) {
    %a: f32[2] = custom([%x], op="Foo", types=["f32[*]"]) %b: f32[2] = custom([%x], op="Foo", types=["f32[*]"])
    return %a, %b })");
  expect_unchanged(fold_constants, R"(graph g() {
    %c = constant(value=f32[2] {1, 2}) %a: f32[2] = custom([%c], op="Foo", types=["f32[*]"]) return %a })");
  expect_unchanged(hoist_invariants, R"(graph g(%x: f32[2]) {
    %n = constant(value=i64[] {3}) %y = while(trip_count=%n, carried=[%x], captured=[%x])
      body(%i: i64[], %v: f32[2], %w: f32[2]) {
        %go = constant(value=bool[] {1}) %a: f32[2] = custom([%w], op="Foo", types=["f32[*]"]) %s = add(%v, %a)
        return %go, %s }
    return %y })");
}

}  // namespace
}  // namespace tenon::onnx
