#include "ops/onnx_node.h"

#include "ir/graph_text.h"

namespace tenon {
namespace {

std::unique_ptr<Graph> with_kept_node() {
  register_ops();
  std::unique_ptr<Graph> graph = parse("graph g(%x: f32[n,4]) { return %x }");
  const InsertBefore end(graph->return_node());
  const Value x = graph->input(0);
  graph->set_outputs(keep_onnx_node(
      *graph, {.op = "a.b.Op", .since = 2, .until = 5, .inputs = {-1, 0}, .attributes = {"\x0a"}}, {x},
      {x.type(), Type::tensor(DType::I64, {3})}));
  return graph;
}

TEST(OnnxNode, HasTheTypesThatItIsGiven) {
  const std::unique_ptr<Graph> graph = with_kept_node();
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[n,4]");
  EXPECT_EQ(to_string(graph->bind({{"n", 7}})->outputs()[0].type()), "f32[7,4]");
  EXPECT_EQ(to_string(graph->outputs()[1].type()), "i64[3]");
  const OnnxNode kept = onnx_node_of(*graph->outputs()[0].node());
  EXPECT_EQ(kept.op, "a.b.Op");
  EXPECT_EQ(kept.since, 2);
  EXPECT_EQ(kept.until, 5);
  EXPECT_EQ(kept.inputs, (std::vector<int64_t>{-1, 0}));
  EXPECT_EQ(kept.attributes, (std::vector<std::string>{"\x0a"}));
}

TEST(OnnxNode, IsNotComputed) {
  const std::unique_ptr<Graph> graph = with_kept_node();
  expect_error<UserError>(
      [&] {
        evaluate(*graph, {f32({1, 4}, {1, 2, 3, 4})});
      },
      "onnx_node: a.b.Op is kept to be written, and cannot be computed");
}

TEST(OnnxNode, RefusesWhatIsNoDtype) {
  register_ops();
  expect_error<UserError>(
      [] {
        parse(
            R"(graph(%x: f32[2]) { %y = onnx_node([%x], name="Op", since=1, until=1, inputs=[0], attributes=[], dtypes=["f31"]) return %y })");
      },
      "line 1, column 21: onnx_node: f31 is no dtype");
}

}  // namespace
}  // namespace tenon
