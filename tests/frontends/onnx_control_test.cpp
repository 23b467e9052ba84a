// ONNX control flow: what nested graphs capture, and how the types of loops settle.
#include "frontends/onnx_run.h"
#include "ir/print.h"

namespace tenon::onnx {
namespace {

using namespace encode;

std::unique_ptr<Graph> import(const GraphParts& parts, int64_t version = 17) {
  std::unique_ptr<Graph> graph = onnx::import(model(parts, {}, {opset(version)}));
  // Nested graphs survive a copy and a trip through text.
  EXPECT_EQ(difference(*graph, *graph->clone()), "");
  EXPECT_EQ(difference(*graph, *parse_graph(print(*graph))), "");
  return graph;
}

Bytes branches(const GraphParts& then, const GraphParts& otherwise, const std::string& output = "y") {
  return node(
      "If", {"c"}, {output},
      {graph_attribute("then_branch", graph(then)), graph_attribute("else_branch", graph(otherwise))});
}

const Bytes kCondition = value("c", kBool, {}), kX = value("x", kFloat, {"n", 2});

TEST(OnnxIf, CapturesWhatItsBranchesUse) {
  const GraphParts adds = {.nodes = {node("Add", {"x", "w"}, {"t"})}, .outputs = {untyped("t")}};
  const GraphParts copies = {.outputs = {untyped("z")}};
  const auto imported = import({.nodes = {branches(adds, copies)},
                                .inputs = {kCondition, kX, value("z", kFloat, {"n", 2})},
                                .outputs = {untyped("y")},
                                .initializers = {tensor<float>("w", {2}, {10, 20})}});
  const Node* node = imported->outputs()[0].node();
  ASSERT_TRUE(node->is("if"));
  // The small weight stays a constant inside; x and z come in, to both branches.
  EXPECT_EQ(node->ins("inputs").size(), 2u);
  EXPECT_EQ(to_string(node->result().type()), "f32[n,2]");
  const Tensor x = f32({1, 2}, {1, 2}), z = f32({1, 2}, {5, 6});
  expect_tensor(evaluate(*imported, {Tensor::scalar(true), x, z})[0], f32({1, 2}, {11, 22}));
  expect_tensor(evaluate(*imported, {Tensor::scalar(false), x, z})[0], z);
}

TEST(OnnxIf, CapturesThroughTwoGraphs) {
  const GraphParts inner = {.nodes = {node("Mul", {"x", "x"}, {"i"})}, .outputs = {untyped("i")}};
  const GraphParts other = {.nodes = {node("Add", {"x", "x"}, {"j"})}, .outputs = {untyped("j")}};
  const GraphParts outer = {.nodes = {branches(inner, other, "o")}, .outputs = {untyped("o")}};
  const auto imported = import({.nodes = {branches(outer, {.outputs = {untyped("x")}})},
                                .inputs = {kCondition, kX},
                                .outputs = {untyped("y")}});
  expect_tensor(evaluate(*imported, {Tensor::scalar(true), f32({1, 2}, {3, 4})})[0], f32({1, 2}, {9, 16}));
}

TEST(OnnxIf, TakesTheBranchThatIsKnown) {
  // Exporters guard a squeeze by a look at the shape; the branch not taken would be refused here.
  const GraphParts invalid = {.nodes = {node("Reshape", {"x", "seven"}, {"t"})}, .outputs = {untyped("t")}};
  const GraphParts valid = {.nodes = {node("Add", {"x", "x"}, {"t"})}, .outputs = {untyped("t")}};
  const auto imported =
      import({.nodes = {node("Equal", {"four", "seven"}, {"c"}), branches(invalid, valid)},
              .inputs = {value("x", kFloat, {2, 2})},
              .outputs = {untyped("y")},
              .initializers = {tensor<int64_t>("four", {1}, {4}), tensor<int64_t>("seven", {1}, {7})}});
  EXPECT_TRUE(imported->outputs()[0].node()->is("add"));
}

TEST(OnnxIf, TakesTheBranchThatFollowsFromAShape) {
  const GraphParts parts_of_four = {
      .nodes = {node("Split", {"x"}, {"a", "b", "c", "d"}, {int_attribute("num_outputs", 4)})},
      .outputs = {untyped("a")}};
  const GraphParts all = {.nodes = {node("Identity", {"x"}, {"t"})}, .outputs = {untyped("t")}};
  // Whether x has four elements; of five, four equal parts cannot be made.
  const auto is_four = [&](const std::vector<Size>& sizes) {
    const GraphParts parts = {.nodes = {node("Size", {"x"}, {"size"}), node("Equal", {"size", "four"}, {"c"}),
                                        branches(parts_of_four, all)},
                              .inputs = {value("x", kInt64, sizes)},
                              .outputs = {untyped("y")},
                              .initializers = {tensor<int64_t>("four", {}, {4})}};
    return import(parts, 18);
  };
  expect_tensor(evaluate(*is_four({5}), {i64({5}, {1, 2, 3, 4, 5})})[0], i64({5}, {1, 2, 3, 4, 5}));
  expect_tensor(evaluate(*is_four({4}), {i64({4}, {1, 2, 3, 4})})[0], i64({1}, {1}));
  EXPECT_TRUE(is_four({"n"})->outputs()[0].node()->is("if"));
}

// A body that hands its carried value on through one node, and collects it.
GraphParts body(const Bytes& step) {
  return {.nodes = {step, node("Identity", {"go"}, {"go_on"})},
          .inputs = {value("iteration", kInt64, {}), value("go", kBool, {}), value("a", kFloat, {})},
          .outputs = {untyped("go_on"), untyped("b"), untyped("b")}};
}

TEST(OnnxLoop, KnowsItsTurnsAndKeepsItsTypes) {
  const auto imported =
      import({.nodes = {node("Loop", {"trips", "", "x"}, {"y", "all"},
                             {graph_attribute("body", graph(body(node("Add", {"a", "w"}, {"b"}))))})},
              .inputs = {kX},
              .outputs = {untyped("y"), untyped("all")},
              .initializers = {tensor<int64_t>("trips", {1}, {3}), tensor<float>("w", {}, {1})}});
  EXPECT_EQ(to_string(imported->outputs()[0].type()), "f32[n,2]");
  EXPECT_EQ(to_string(imported->outputs()[1].type()), "f32[3,n,2]");
  expect_tensor(evaluate(*imported, {f32({1, 2}, {0, 1})})[1], f32({3, 1, 2}, {1, 2, 2, 3, 3, 4}));
}

TEST(OnnxLoop, NumbersItsTurnsAsTheBodyDeclares) {
  const auto numbered = [](const std::vector<Size>& sizes) {
    const GraphParts parts = {.nodes = {node("Identity", {"go"}, {"go_on"})},
                              .inputs = {value("iteration", kInt64, sizes), value("go", kBool, {})},
                              .outputs = {untyped("go_on"), untyped("iteration")}};
    const auto imported =
        import({.nodes = {node("Loop", {"trips", ""}, {"all"}, {graph_attribute("body", graph(parts))})},
                .outputs = {untyped("all")},
                .initializers = {tensor<int64_t>("trips", {1}, {2})}});
    return evaluate(*imported, {})[0];
  };
  expect_tensor(numbered({}), i64({2}, {0, 1}));
  expect_tensor(numbered({1}), i64({2, 1}, {0, 1}));
}

TEST(OnnxLoop, WidensTheTypeOfWhatChangesShape) {
  const auto imported =
      import({.nodes = {node("Loop", {"trips", "", "x"}, {"y", "all"},
                             {graph_attribute("body", graph(body(node("Reshape", {"a", "flat"}, {"b"}))))})},
              .inputs = {value("trips", kInt64, {}), kX},
              .outputs = {untyped("y"), untyped("all")},
              .initializers = {tensor<int64_t>("flat", {1}, {-1})}});
  EXPECT_EQ(to_string(imported->outputs()[0].type()), "f32[*]");
  const Data results = evaluate(*imported, {i64({}, {2}), f32({1, 2}, {3, 4})});
  expect_tensor(results[0], f32({2}, {3, 4}));
  expect_tensor(results[1], f32({2, 2}, {3, 4, 3, 4}));
}

TEST(OnnxLoop, CarriesAnOptionalThatItsBodyFills) {
  GraphParts doubling = body(node("Add", {"held", "held"}, {"b"}));
  doubling.nodes.push_back(node("OptionalGetElement", {"a"}, {"held"}));
  doubling.outputs.pop_back();
  const auto imported =
      import({.nodes = {node("Loop", {"trips", "", "x"}, {"y"}, {graph_attribute("body", graph(doubling))})},
              .inputs = {value("trips", kInt64, {}), value("x", optional_type(tensor_type(kFloat, {2})))},
              .outputs = {untyped("y")}});
  EXPECT_EQ(to_string(imported->outputs()[0].type()), "f32[2]");
  const Optional held = {std::make_shared<const Datum>(f32({2}, {1, 2}))};
  expect_tensor(evaluate(*imported, {i64({}, {3}), held})[0], f32({2}, {8, 16}));
}

TEST(OnnxLoop, SaysWhatItsBodyLacks) {
  GraphParts lacking = body(node("Add", {"a", "a"}, {"b"}));
  lacking.outputs = {untyped("go_on")};
  register_ops();
  const auto refuse = [](const GraphParts& parts, const std::string& message) {
    const TemporaryFolder folder;
    const auto path = folder.write(
        "m.onnx",
        model({.nodes = {node("Loop", {"", "c", "x"}, {"y"}, {graph_attribute("body", graph(parts))})},
               .inputs = {kCondition, kX},
               .outputs = {untyped("y")}}));
    expect_error<UserError>([&] { read_onnx(path); }, path.string() + ": node \"y\": " + message);
  };
  refuse(lacking, "while: body gives 1 values, but must give whether to go on, and 1 carried values");
  lacking.inputs.pop_back();
  lacking.nodes.erase(lacking.nodes.begin());
  refuse(lacking, "nested graph \"g\" has 2 inputs, but 3 are fed");
}

// Running sums, backwards, for each example of a batch: opset 8.
std::unique_ptr<Graph> batched_sums(bool with_lengths) {
  const GraphParts sums = {.nodes = {node("Add", {"s", "v"}, {"t"})},
                           .inputs = {value("s", kFloat, {}), value("v", kFloat, {})},
                           .outputs = {untyped("t"), untyped("t")}};
  GraphParts parts = {
      .nodes = {node("Scan", {with_lengths ? "lengths" : "", "start", "x"}, {"last", "all"},
                     {graph_attribute("body", graph(sums)), int_attribute("num_scan_inputs", 1),
                      ints_attribute("directions", {1})})},
      .inputs = {value("start", kFloat, {"b"}), value("x", kFloat, {"b", "t"})},
      .outputs = {untyped("last"), untyped("all")}};
  if (with_lengths)
    parts.inputs.push_back(value("lengths", kInt64, {"b"}));
  return import(parts, 8);
}

TEST(OnnxScan, RunsEachExampleOfABatchOnItsOwn) {
  const auto imported = batched_sums(false);
  EXPECT_EQ(to_string(imported->outputs()[1].type()), "f32[b,t]");
  const Data results = evaluate(*imported, {f32({2}, {100, 200}), f32({2, 3}, {1, 2, 3, 4, 5, 6})});
  expect_tensor(results[0], f32({2}, {106, 215}));
  expect_tensor(results[1], f32({2, 3}, {103, 105, 106, 206, 211, 215}));
}

TEST(OnnxScan, EndsEachExampleAtItsLength) {
  const Data results =
      evaluate(*batched_sums(true),
               {f32({3}, {100, 200, 300}), f32({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), i64({3}, {2, 3, 0})});
  expect_tensor(results[0], f32({3}, {103, 215, 300}));
  expect_tensor(results[1], f32({3, 3}, {102, 103, 0, 206, 211, 215, 0, 0, 0}));
}

}  // namespace
}  // namespace tenon::onnx
