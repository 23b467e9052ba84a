// What a torch.export archive may say besides its ops: weights, names, sizes, changes in place, nested
// graphs.
#include "frontends/torch_program.h"
#include "ir/print.h"
#include "ops/data.h"

namespace tenon::torch {
namespace {

using namespace write;

const Tensor kInput = f32({2}, {1, 2});
const std::vector<std::pair<std::string, Json>> kX = {{"x", meta_of(kInput)}};

NodeText node(const std::string& target, const Arguments& arguments, const std::string& output,
              const std::string& module = "") {
  return {target, arguments, Json::array({tensor_name(output)}), module};
}
NodeText add(const std::string& a, const std::string& b, const std::string& output) {
  return node("aten.add.Tensor", {{"self", tensor_name(a)}, {"other", tensor_name(b)}}, output);
}
NodeText times(const std::string& a, double factor, const std::string& output) {
  return node("aten.mul.Tensor", {{"self", tensor_name(a)}, {"other", {{"as_float", factor}}}}, output);
}
NodeText increase(const std::string& a, const std::string& output) {
  return node("aten.add_.Tensor", {{"self", tensor_name(a)}, {"other", {{"as_int", 1}}}}, output);
}
NodeText slice(const std::string& a, int start, int end, const std::string& output) {
  return node("aten.slice.Tensor",
              {{"self", tensor_name(a)},
               {"dim", {{"as_int", 0}}},
               {"start", {{"as_int", start}}},
               {"end", {{"as_int", end}}}},
              output);
}

TEST(TorchChanges, OfShapesAreRefused) {
  const ProgramText program = {.inputs = kX,
                               .nodes = {node("aten.unsqueeze_.default",
                                              {{"self", tensor_name("x")}, {"dim", {{"as_int", 1}}}}, "y")}};
  EXPECT_THROW(import(program), UserError);
}

// --- weights and names

TEST(TorchWeights, StayInTheFileUnderTheirNames) {
  ProgramText program = {.inputs = kX, .nodes = {add("x", "p_layer.bias", "y")}};
  add_weight(program, "layer.bias", f32({2}, {10, 20}));
  const auto graph = import(program);
  const Node& weight = *graph->nodes().front();
  EXPECT_TRUE(weight.is("parameter"));
  EXPECT_EQ(weight.attr("name").as<std::string>(), "layer.bias");
  EXPECT_TRUE(std::holds_alternative<Literal::FileSlice>(literal_of(weight)->form()));
  expect_tensor(evaluate(*graph, {kInput})[0], f32({2}, {11, 22}));
}

TEST(TorchWeights, MayBeDeflated) {
  ProgramText program = {.inputs = kX, .nodes = {add("x", "p_w", "y")}};
  add_weight(program, "w", f32({2}, {10, 20}));
  program.files[0].deflated = true;
  expect_tensor(run(program, {kInput})[0], f32({2}, {11, 22}));
}

TEST(TorchWeights, MayShareAFileAndHaveStrides) {
  // One storage of 1 … 6, seen as two of its elements with a stride, and as the last two.
  ProgramText program = {.inputs = kX, .nodes = {add("x", "p_a", "t"), add("t", "p_b", "y")}};
  program.weights = {{"p_a", "a", meta(DType::F32, {2}, {3}, 1), "weight_0"},
                     {"p_b", "b", meta(DType::F32, {2}, {1}, 4), "weight_0"}};
  program.files = {{"weight_0", bytes_of(f32({6}, {1, 2, 3, 4, 5, 6}))}};
  for (bool deflated : {false, true}) {
    program.files[0].deflated = deflated;
    expect_tensor(run(program, {kInput})[0], f32({2}, {1 + 2 + 5, 2 + 5 + 6}));
  }
}

TEST(TorchWeights, ThatAreTransposedAreReadInTheirOrder) {
  ProgramText program = {.inputs = {{"x", meta(DType::F32, {2, 2}, {2, 1})}},
                         .nodes = {add("x", "p_w", "y")}};
  program.weights = {{"p_w", "w", meta(DType::F32, {2, 2}, {1, 2}), "weight_0"}};
  program.files = {{"weight_0", bytes_of(f32({4}, {1, 2, 3, 4}))}};
  expect_tensor(run(program, {f32({2, 2}, {0, 0, 0, 0})})[0], f32({2, 2}, {1, 3, 2, 4}));
}

TEST(TorchWeights, ThatAreConstantsAreNoParameters) {
  ProgramText program = {.inputs = kX, .nodes = {add("x", "p_c", "y")}};
  add_weight(program, "c", f32({}, {5}), "tensor_constant");
  const auto graph = import(program);
  EXPECT_TRUE(graph->nodes().front()->is("constant"));
  expect_tensor(evaluate(*graph, {kInput})[0], f32({2}, {6, 7}));
}

TEST(TorchNodes, RememberTheirModules) {
  const ProgramText program = {
      .inputs = kX,
      .nodes = {node("aten.relu.default", {{"self", tensor_name("x")}}, "relu", "layer1.0.act"),
                node("aten.neg.default", {{"self", tensor_name("relu")}}, "y")}};
  const auto graph = import(program);
  EXPECT_EQ(graph->nodes()[0]->sources(), std::vector<std::string>{"layer1.0.act/relu"});
  EXPECT_EQ(graph->nodes()[1]->sources(), std::vector<std::string>{"y"});
  EXPECT_EQ(graph->nodes()[0]->result().name(), "relu");
}

// --- sizes

TEST(TorchSizes, AreSymbolsAndExpressions) {
  ProgramText program = {.inputs = {{"x", meta(DType::F32, {"Symbol('s0', positive=True, integer=True)",
                                                            "Mul(Integer(2), Symbol('s1'))"})}}};
  program.nodes = {
      {"aten.sym_size.int",
       {{"self", tensor_name("x")}, {"dim", {{"as_int", 0}}}},
       Json::array({number_name("n")})},
      {"aten.sym_size.int",
       {{"self", tensor_name("x")}, {"dim", {{"as_int", 1}}}},
       Json::array({number_name("m")})},
      {"_operator.floordiv",
       {{"a", number_name("m")}, {"b", {{"as_int", 2}}}},
       Json::array({number_name("h")})},
      node("aten.view.default",
           {{"self", tensor_name("x")},
            {"size", {{"as_sym_ints", {{{"as_name", "n"}}, {{"as_int", 2}}, {{"as_name", "h"}}}}}}},
           "y")};
  const auto graph = import(program);
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[s0,2,s1]");
  EXPECT_EQ(to_string(type_of(evaluate(*graph, {Tensor(DType::F32, {3, 4})})[0])), "f32[3,2,2]");
  // A range of one number is that number.
  program.ranges = {{"s0", {{"min_val", 3}, {"max_val", 3}}}, {"s1", {{"min_val", 2}, {"max_val", nullptr}}}};
  EXPECT_EQ(to_string(import(program)->outputs()[0].type()), "f32[3,2,s1]");
}

TEST(TorchSizes, OfBatchesMayVaryInTraining) {
  const Tensor zero = f32({1}, {0}), one = f32({1}, {1});
  ProgramText program = {.inputs = {{"x", meta(DType::F32, {"Symbol('s0')", 1, "Symbol('s1')"},
                                               {"Symbol('s1')", "Symbol('s1')", 1})},
                                    {"mean", meta_of(zero)},
                                    {"var", meta_of(one)}},
                         .nodes = {{"aten._native_batch_norm_legit_functional.default",
                                    {{"input", tensor_name("x")},
                                     {"weight", none()},
                                     {"bias", none()},
                                     {"running_mean", tensor_name("mean")},
                                     {"running_var", tensor_name("var")},
                                     {"training", {{"as_bool", true}}},
                                     {"momentum", {{"as_float", 0.5}}},
                                     {"eps", {{"as_float", 0.0}}}},
                                    Json::array({tensor_name("y"), tensor_name("a"), tensor_name("b"),
                                                 tensor_name("moved_mean"), tensor_name("moved_var")})}},
                         .outputs = {"y", "moved_mean", "moved_var"}};
  // The variance is that of a sample: 2 of two elements, 4 / 3 of four.
  const Data two = run(program, {f32({2, 1, 1}, {1, 3}), zero, one});
  expect_near(two[0], f32({2, 1, 1}, {-1, 1}), 1e-6);
  expect_near(two[1], f32({1}, {1}), 1e-6);
  expect_near(two[2], f32({1}, {1.5}), 1e-6);
  expect_near(run(program, {f32({2, 1, 2}, {1, 3, 1, 3}), zero, one})[2], f32({1}, {7.0 / 6}), 1e-6);
}

TEST(TorchSizes, MayBeTakenFromElements) {
  ProgramText program = {.inputs = {{"x", meta(DType::I64, {})}}};
  program.nodes = {
      {"aten.item.default", {{"self", tensor_name("x")}}, Json::array({number_name("u0")})},
      {"aten.sym_constrain_range_for_size.default", {{"size", number_name("u0")}}, Json::array()},
      node("aten.arange.default", {{"end", number_name("u0")}}, "y")};
  expect_tensor(run(program, {i64({}, {3})})[0], i64({3}, {0, 1, 2}));
}

// --- changes in place

TEST(TorchChanges, OfATensorAreSeenUnderAllItsNames) {
  const ProgramText program = {
      .inputs = kX,
      .nodes = {times("x", 1, "t"), increase("t", "u"), increase("u", "v"), add("t", "v", "y")}};
  expect_tensor(run(program, {kInput})[0], f32({2}, {6, 8}));
}

TEST(TorchChanges, OfAViewAreSeenInWhatItIsOf) {
  const ProgramText program = {
      .inputs = kX,
      .nodes = {times("x", 1, "t"), slice("t", 1, 2, "v"), increase("v", "w"), times("t", 10, "y")}};
  expect_tensor(run(program, {kInput})[0], f32({2}, {10, 30}));
}

TEST(TorchChanges, AreSeenInOtherViews) {
  const ProgramText program = {
      .inputs = kX,
      .nodes = {times("x", 1, "t"), slice("t", 0, 1, "first"), slice("t", 1, 2, "second"), increase("t", "u"),
                add("first", "second", "y")}};
  expect_tensor(run(program, {kInput})[0], f32({1}, {5}));
}

TEST(TorchChanges, GoThroughViewsOfViews) {
  // t.view(2, 1).transpose(0, 1)[0, 1] is t's second element.
  const ProgramText program = {
      .inputs = kX,
      .nodes = {
          times("x", 1, "t"),
          node("aten.view.default", {{"self", tensor_name("t")}, {"size", {{"as_ints", {2, 1}}}}}, "column"),
          node("aten.transpose.int",
               {{"self", tensor_name("column")}, {"dim0", {{"as_int", 0}}}, {"dim1", {{"as_int", 1}}}},
               "row"),
          node("aten.select.int",
               {{"self", tensor_name("row")}, {"dim", {{"as_int", 1}}}, {"index", {{"as_int", 1}}}},
               "element"),
          node("aten.fill_.Scalar", {{"self", tensor_name("element")}, {"value", {{"as_int", 7}}}}, "filled"),
          times("t", 1, "y")}};
  expect_tensor(run(program, {kInput})[0], f32({2}, {1, 7}));
}

TEST(TorchChanges, OfACopyAreNotSeen) {
  const ProgramText program = {
      .inputs = kX,
      .nodes = {times("x", 1, "t"), node("aten.clone.default", {{"self", tensor_name("t")}}, "c"),
                increase("c", "d"), times("t", 1, "y")}};
  expect_tensor(run(program, {kInput})[0], f32({2}, {1, 2}));
}

TEST(TorchChanges, OfAConversionAreSeenUnlessItCopies) {
  for (bool copies : {false, true}) {
    const NodeText converted = node(
        "aten.to.dtype",
        {{"self", tensor_name("t")}, {"dtype", {{"as_scalar_type", 7}}}, {"copy", {{"as_bool", copies}}}},
        "c");
    const ProgramText program = {
        .inputs = kX, .nodes = {times("x", 1, "t"), converted, increase("c", "d"), times("t", 1, "y")}};
    expect_tensor(run(program, {kInput})[0], copies ? f32({2}, {1, 2}) : f32({2}, {2, 3}));
  }
}

TEST(TorchChanges, OfInputsAndBuffersBecomeOutputs) {
  ProgramText program = {.inputs = kX,
                         .nodes = {increase("x", "t"), increase("p_count", "c"), times("t", 2, "y")}};
  add_weight(program, "count", i64({}, {3}), "buffer");
  const auto graph = import(program);
  EXPECT_EQ(graph->output_names(), (std::vector<std::string>{"y", "count", "x"}));
  const Data outputs = evaluate(*graph, {kInput});
  expect_tensor(outputs[0], f32({2}, {4, 6}));
  expect_tensor(outputs[1], i64({}, {4}));
  expect_tensor(outputs[2], f32({2}, {2, 3}));
}

TEST(TorchChanges, InTheSignatureBecomeOutputs) {
  ProgramText program = {
      .inputs = kX, .nodes = {add("p_count", "x", "next"), times("x", 2, "y")}, .outputs = {"next", "y"}};
  add_weight(program, "count", f32({}, {3}), "buffer");
  Json json = program.json();
  json["graph_module"]["signature"]["output_specs"][0] = {
      {"buffer_mutation", {{"arg", {{"name", "next"}}}, {"buffer_name", "count"}}}};
  const auto graph = import_parts(program.parts(json.dump()));
  EXPECT_EQ(graph->output_names(), (std::vector<std::string>{"y", "count"}));
}

TEST(TorchChanges, ThatOnlyPyTorchCouldFollowAreRefused) {
  const auto reshaped =
      node("aten.reshape.default", {{"self", tensor_name("t")}, {"shape", {{"as_ints", {2, 1}}}}}, "r");
  // Nobody looks at t again.
  expect_tensor(run({.inputs = kX, .nodes = {times("x", 1, "t"), reshaped, increase("r", "y")}}, {kInput})[0],
                f32({2, 1}, {2, 3}));
  write::refuse<UnsupportedError>(
      {.inputs = kX, .nodes = {times("x", 1, "t"), reshaped, increase("r", "s"), times("t", 1, "y")}},
      "node \"y\": \"t\" is used after \"r\" was changed in place, and only PyTorch knows whether they share "
      "memory");
  write::refuse<UnsupportedError>(
      {.inputs = kX, .nodes = {times("x", 1, "t"), reshaped, increase("t", "s"), times("r", 1, "y")}},
      "node \"y\": \"r\" is used after \"t\" was changed in place, and only PyTorch knows whether they share "
      "memory");
  const auto expanded =
      node("aten.expand.default", {{"self", tensor_name("t")}, {"size", {{"as_ints", {3, 2}}}}}, "e");
  write::refuse<UnsupportedError>({.inputs = kX, .nodes = {times("x", 1, "t"), expanded, increase("e", "y")}},
                                  "node \"y\": \"e\", a view of \"t\", is changed in place");
}

// --- nested graphs

Json body(const std::vector<NodeText>& nodes, const std::vector<std::string>& inputs,
          const std::vector<std::string>& outputs) {
  Json in = Json::array(), out = Json::array();
  for (const std::string& name : inputs)
    in.push_back(tensor_name(name));
  for (const std::string& name : outputs)
    out.push_back(tensor_name(name));
  return nested(graph_of(in, out, nodes));
}

TEST(TorchNested, GraphsAreChosen) {
  const ProgramText program = {.inputs = {{"c", meta(DType::Bool, {})}, kX[0]},
                               .nodes = {node("higher_order.cond",
                                              {{"", tensor_name("c")},
                                               {"", body({times("a", 2, "b")}, {"a"}, {"b"})},
                                               {"", body({times("a", 3, "b")}, {"a"}, {"b"})},
                                               {"", tensor_names({"x"})}},
                                              "y")}};
  expect_tensor(run(program, {tensor(DType::Bool, {}, {1}), kInput})[0], f32({2}, {2, 4}));
  expect_tensor(run(program, {tensor(DType::Bool, {}, {0}), kInput})[0], f32({2}, {3, 6}));
}

TEST(TorchNested, GraphsAreRepeatedWhileTheirConditionHolds) {
  const NodeText below =
      node("aten.lt.Scalar", {{"self", tensor_name("a")}, {"other", {{"as_int", 20}}}}, "lt");
  const ProgramText program = {.inputs = {{"x", meta(DType::F32, {})}},
                               .nodes = {node("higher_order.while_loop",
                                              {{"", body({below}, {"a"}, {"lt"})},
                                               {"", body({times("a", 2, "b")}, {"a"}, {"b"})},
                                               {"", tensor_names({"x"})},
                                               {"", tensor_names({})}},
                                              "y")}};
  expect_tensor(run(program, {f32({}, {3})})[0], f32({}, {24}));
  expect_tensor(run(program, {f32({}, {50})})[0], f32({}, {50}));
}

TEST(TorchNested, GraphsAreMapped) {
  const ProgramText program = {.inputs = {{"x", meta(DType::F32, {3})}, {"s", meta(DType::F32, {})}},
                               .nodes = {node("higher_order.map_impl",
                                              {{"", body({add("a", "b", "c")}, {"a", "b"}, {"c"})},
                                               {"", tensor_names({"x"})},
                                               {"", tensor_names({"s"})}},
                                              "y")}};
  expect_tensor(run(program, {f32({3}, {1, 2, 3}), f32({}, {10})})[0], f32({3}, {11, 12, 13}));
}

TEST(TorchNested, GraphsOfAnotherModeAreCalled) {
  const ProgramText program = {.inputs = kX,
                               .nodes = {node("higher_order.wrap_with_set_grad_enabled",
                                              {{"", {{"as_bool", false}}},
                                               {"", body({times("a", 2, "b")}, {"a"}, {"b"})},
                                               {"", tensor_name("x")}},
                                              "y")}};
  expect_tensor(run(program, {kInput})[0], f32({2}, {2, 4}));
}

TEST(TorchNested, GraphsThatAreFedOtherwiseAreRefused) {
  write::refuse(
      {.inputs = kX,
       .nodes = {node("higher_order.wrap_with_set_grad_enabled",
                      {{"", {{"as_bool", false}}}, {"", body({}, {"a", "b"}, {"a"})}, {"", tensor_name("x")}},
                      "y")}},
      "node \"y\": a nested graph has 2 inputs, but 1 are fed");
}

}  // namespace
}  // namespace tenon::torch
