// What a model may say besides its nodes: functions, names, order, weights; and what we say when it is wrong.
#include "frontends/onnx_run.h"
#include "ir/print.h"

namespace tenon::onnx {
namespace {

using namespace encode;

const Bytes kX = value("x", kFloat, {2}), kY = untyped("y");
const Tensor kInput = f32({2}, {1, 2});

// --- functions

// scale(x) = x · factor, where the factor is an attribute.
Bytes scale(const Messages& defaults = {}) {
  return function({.name = "scale",
                   .inputs = {"a"},
                   .outputs = {"b"},
                   .attributes = {"factor"},
                   .nodes = {node("Constant", {}, {"c"}, {reference("value_float", "factor", 1)}),
                             node("Mul", {"a", "c"}, {"b"})},
                   .defaults = defaults});
}
Bytes call(const std::string& name, const Names& inputs, const Names& outputs,
           const Messages& attributes = {}, const std::string& overload = "") {
  return node(name, inputs, outputs, attributes,
              {.name = outputs.at(0), .domain = "local", .overload = overload});
}

TEST(OnnxFunctions, ReferToAttributesOfTheirCall) {
  const GraphParts graph = {
      .nodes = {call("scale", {"x"}, {"t"}, {float_attribute("factor", 3)}), call("scale", {"t"}, {"y"})},
      .inputs = {kX},
      .outputs = {kY}};
  // The second call takes the default.
  expect_tensor(run(model(graph, {scale({float_attribute("factor", 10)})}), {kInput}), f32({2}, {30, 60}));
  refuse(model(graph, {scale()}), R"(node "y": node "c": Constant: it has no value)");
}

TEST(OnnxFunctions, HandTheirAttributesOn) {
  const Bytes twice = function({.name = "twice",
                                .inputs = {"a"},
                                .outputs = {"b"},
                                .attributes = {"by"},
                                .nodes = {call("scale", {"a"}, {"t"}, {reference("factor", "by", 1)}),
                                          call("scale", {"t"}, {"b"}, {reference("factor", "by", 1)})}});
  const auto graph = import(model(
      {.nodes = {call("twice", {"x"}, {"y"}, {float_attribute("by", 3)})}, .inputs = {kX}, .outputs = {kY}},
      {scale(), twice}));
  expect_tensor(evaluate(*graph, {kInput})[0], f32({2}, {9, 18}));
  // Nodes are known by the calls they are in.
  EXPECT_EQ(graph->outputs()[0].node()->sources(), std::vector<std::string>{"y/b/b"});
}

TEST(OnnxFunctions, HaveOverloads) {
  const auto overload = [](const std::string& name, const std::string& op) {
    return function({.name = "f",
                     .inputs = {"a"},
                     .outputs = {"b"},
                     .nodes = {node(op, {"a", "a"}, {"b"})},
                     .overload = name});
  };
  expect_tensor(run(model({.nodes = {call("f", {"x"}, {"t"}, {}, "add"), call("f", {"t"}, {"y"}, {}, "mul")},
                           .inputs = {kX},
                           .outputs = {kY}},
                          {overload("mul", "Mul"), overload("add", "Add")}),
                    {kInput}),
                f32({2}, {4, 16}));
}

TEST(OnnxFunctions, AreReadInTheirOwnOpset) {
  // The axes of a sum were an attribute before opset 13, and are an input since.
  const Bytes old = function({.name = "old",
                              .inputs = {"a"},
                              .outputs = {"b"},
                              .nodes = {node("ReduceSum", {"a"}, {"b"}, {ints_attribute("axes", {1})})},
                              .opsets = {opset(11)}});
  expect_tensor(run(model({.nodes = {call("old", {"x"}, {"t"}), node("ReduceSum", {"t", "axes"}, {"y"})},
                           .inputs = {value("x", kFloat, {2, 2})},
                           .outputs = {kY},
                           .initializers = {tensor<int64_t>("axes", {1}, {0})}},
                          {old}),
                    {f32({2, 2}, {1, 2, 3, 4})}),
                f32({1, 1}, {10}));
  refuse<UnsupportedError>(
      model({.nodes = {call("new", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}},
            {function({.name = "new", .inputs = {"a"}, .outputs = {"a"}, .opsets = {opset(99)}})}),
      "function \"new\" uses opset 99, but the newest we know is 28");
}

TEST(OnnxFunctions, PassOnThatAnInputIsLeftOut) {
  const Bytes has = function({.name = "has",
                              .inputs = {"a", "b"},
                              .outputs = {"c"},
                              .nodes = {node("OptionalHasElement", {"b"}, {"c"})},
                              .opsets = {opset(18)}});
  const auto graph = [](const Names& inputs) {
    return GraphParts{.nodes = {call("has", inputs, {"y"})}, .inputs = {kX}, .outputs = {kY}};
  };
  expect_tensor(run(model(graph({"x"}), {has}), {kInput}), tenon::tensor(DType::Bool, {}, {0}));
  expect_tensor(run(model(graph({"x", ""}), {has}), {kInput}), tenon::tensor(DType::Bool, {}, {0}));
  expect_tensor(run(model(graph({"x", "x"}), {has}), {kInput}), tenon::tensor(DType::Bool, {}, {1}));
  refuse(model(graph({"x", "x", "x"}), {has}),
         R"(node "y": has: the function takes 2 inputs, but 3 are given)");
}

TEST(OnnxFunctions, MayNotBeDefinedTwice) {
  const GraphParts graph = {.nodes = {call("scale", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}};
  refuse(model(graph, {scale(), scale()}), R"(function "scale" is defined twice)");
}

TEST(OnnxFunctions, MayNotCallThemselves) {
  const auto calls = [](const std::string& name, const std::string& other) {
    return function({.name = name, .inputs = {"a"}, .outputs = {"b"}, .nodes = {call(other, {"a"}, {"b"})}});
  };
  refuse(model({.nodes = {call("f", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}},
               {calls("f", "g"), calls("g", "f")}),
         R"(node "y": node "b": node "b": f: the function calls itself)");
}

TEST(OnnxFunctions, MayNotUnfoldWithoutEnd) {
  // Each calls the next twice: 2^40 nodes in the end.
  Messages functions;
  for (int i = 0; i < 40; ++i) {
    const std::string next = fmt::format("f{}", i + 1);
    functions.push_back(function({.name = fmt::format("f{}", i),
                                  .inputs = {"a"},
                                  .outputs = {"b"},
                                  .nodes = {call(next, {"a"}, {"t"}), call(next, {"t"}, {"b"})}}));
  }
  functions.push_back(function({.name = "f40", .inputs = {"a"}, .outputs = {"a"}}));
  register_ops();
  const TemporaryFolder folder;
  const auto path = folder.write(
      "m.onnx", model({.nodes = {call("f0", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}}, functions));
  try {
    read_onnx(path);
    FAIL() << "it ended";
  } catch (const UserError& error) {
    EXPECT_TRUE(
        std::string(error.what()).ends_with("functions and nested graphs unfold to more than 2000000 nodes"))
        << error.what();
  }
}

TEST(OnnxFunctions, ThatNobodyCallsMayHoldAnything) {
  expect_tensor(run(model({.nodes = {node("Identity", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}},
                          {function({.name = "f", .nodes = {node("Unheard", {}, {"b"})}})}),
                    {kInput}),
                kInput);
}

// --- names and order

TEST(OnnxGraph, NeedNotBeSorted) {
  expect_tensor(run(model({.nodes = {node("Add", {"b", "a"}, {"y"}), node("Mul", {"a", "x"}, {"b"}),
                                     node("Add", {"x", "x"}, {"a"})},
                           .inputs = {kX},
                           .outputs = {kY}}),
                    {kInput}),
                f32({2}, {4, 12}));
}

TEST(OnnxGraph, MayListWeightsAmongItsInputs) {
  const auto graph = import(model({.nodes = {node("Add", {"x", "w"}, {"y"})},
                                   .inputs = {value("w", kFloat, {2}), kX},
                                   .outputs = {kY},
                                   .initializers = {tensor<float>("w", {2}, {10, 20})}}));
  EXPECT_EQ(graph->input_count(), 1);
  expect_tensor(evaluate(*graph, {kInput})[0], f32({2}, {11, 22}));
}

TEST(OnnxGraph, MayBeFedWeightsThatItListsAmongItsInputs) {
  register_ops();
  const TemporaryFolder folder;
  const Bytes ones = sparse(tensor<float>("s", {2}, {1, 1}), tensor<int64_t>("", {2}, {0, 1}), {2});
  const auto path = folder.write(
      "m.onnx",
      model({.nodes = {node("Sum", {"x", "w", "s", "c"}, {"y"})},
             .inputs = {value("w", kFloat, {2}), value("s", kFloat, {"n"}), kX},
             .outputs = {kY},
             .initializers = {tensor<float>("w", {2}, {10, 20}), tensor<float>("c", {2}, {100, 100})},
             .sparse_initializers = {ones}}));
  // The inputs without a value come first. What is no input is a constant, whatever is said.
  const auto graph = read_onnx(path, {.overridden = {"s", "c", "x", "y", "unheard"}});
  std::vector<std::string> inputs;
  for (Value input : graph->inputs())
    inputs.push_back(input.name() + ": " + to_string(input.type()));
  EXPECT_EQ(inputs, (std::vector<std::string>{"x: f32[2]", "s: f32[n]"}));
  expect_tensor(evaluate(*graph, {kInput, f32({2}, {3, 4})})[0], f32({2}, {114, 126}));
}

TEST(OnnxGraph, MaySpellTheDomainOut) {
  const Messages nodes = {node("Add", {"x", "x"}, {"t"}, {}, {.domain = "ai.onnx"}),
                          node("Mul", {"t", "t"}, {"y"})};
  expect_tensor(
      run(model({.nodes = nodes, .inputs = {kX}, .outputs = {kY}}, {}, {opset(17, "ai.onnx")}), {kInput}),
      f32({2}, {4, 16}));
  expect_tensor(run(model({.nodes = nodes, .inputs = {kX}, .outputs = {kY}}), {kInput}), f32({2}, {4, 16}));
}

TEST(OnnxGraph, LeavesOutOptionalInputsAndOutputs) {
  const Messages weights = {tensor<float>("w", {1, 1, 2}, {1, 1}), tensor<float>("r", {1, 1, 1}, {0}),
                            tensor<float>("h", {1, 1, 1}, {7})};
  const auto graph = import(model(
      {.nodes = {node("RNN", {"x", "w", "r", "", "", "h"}, {"", "y"}, {int_attribute("hidden_size", 1)})},
       .inputs = {value("x", kFloat, {1, 1, 2})},
       .outputs = {kY},
       .initializers = weights}));
  EXPECT_EQ(to_string(graph->outputs()[0].type()), "f32[1,1,1]");
}

// ONNX Runtime writes the schema's default into nodes, which has one for each of two directions.
TEST(OnnxGraph, TakesTheDefaultActivationsOfBothDirections) {
  const auto rnn = [](const Names& activations) {
    return model(
        {.nodes = {node("RNN", {"x", "w", "r"}, {"", "y"},
                        {int_attribute("hidden_size", 1), strings_attribute("activations", activations)})},
         .inputs = {value("x", kFloat, {1, 1, 2})},
         .outputs = {kY},
         .initializers = {tensor<float>("w", {1, 1, 2}, {0.25, 0.5}), tensor<float>("r", {1, 1, 1}, {0})}});
  };
  const Tensor x = f32({1, 1, 2}, {1, 1});
  expect_tensor(run(rnn({"Tanh", "Tanh"}), {x}), run(rnn({"Tanh"}), {x}));
  refuse(rnn({"Tanh", "Relu"}), R"(node "y": rnn: 2 activations were given, but it takes 1)");
}

TEST(OnnxGraph, KeepsNestedNamesApart) {
  // Both branches use "t" for a value of their own, and a later node makes another "t" from what they give.
  const auto branch = [](const std::string& op) {
    return graph({.nodes = {node(op, {"x", "x"}, {"t"})}, .outputs = {untyped("t")}, .name = op});
  };
  const Bytes bytes = model({.nodes = {node("Add", {"z", "z"}, {"t"}), node("Identity", {"t"}, {"y"}),
                                       node("If", {"c"}, {"z"},
                                            {graph_attribute("then_branch", branch("Add")),
                                             graph_attribute("else_branch", branch("Mul"))})},
                             .inputs = {value("c", kBool, {}), kX},
                             .outputs = {kY}});
  expect_tensor(run(bytes, {Tensor::scalar(true), kInput}), f32({2}, {4, 8}));
  expect_tensor(run(bytes, {Tensor::scalar(false), kInput}), f32({2}, {2, 8}));
}

TEST(OnnxGraph, SaysWhatIsWrongWithNames) {
  const auto with = [](const Messages& nodes, const Messages& outputs = {kY},
                       const Messages& initializers = {}) {
    return model({.nodes = nodes, .inputs = {kX}, .outputs = outputs, .initializers = initializers});
  };
  const Bytes weight = tensor<float>("w", {1}, {1});
  refuse(with({node("Add", {"x", "x"}, {"y"}), node("Mul", {"x", "x"}, {"y"}, {}, {.name = "second"})}),
         R"(node "second": "y" is made twice)");
  refuse(with({node("Add", {"x", "x"}, {"w"})}, {kY}, {weight}), R"(node "w": "w" is made twice)");
  refuse(with({}, {untyped("w")}, {weight, weight}), R"("w" is made twice)");
  refuse(model({.inputs = {kX, kX}, .outputs = {untyped("x")}}), R"("x" is made twice)");
  refuse(
      with({node("Add", {"x", "lost"}, {"y"})}),
      R"(node "y": Add: input "lost" is made by no node, and is neither a weight nor an input of the graph)");
  refuse(with({node("Add", {"x"}, {"y"})}), R"(node "y": Add: input 1 is missing)");
  refuse(with({node("Add", {"x", ""}, {"y"})}), R"(node "y": Add: input 1 is missing)");
  refuse(with({node("Add", {"x", "x"}, {"z"})}), R"(output "y" is made by no node)");
  refuse(
      with({node("Add", {"x", "b"}, {"a"}), node("Add", {"x", "a"}, {"b"}), node("Add", {"x", "a"}, {"y"})}),
      R"(node "a": Add: it needs its own result, directly or through other nodes)");
  refuse(with({node("Add", {"x", "y"}, {"y"})}),
         R"(node "y": Add: it needs its own result, directly or through other nodes)");
  refuse(with({node("Add", {"x", "x"}, {"y", "z"})}), R"(node "y": Add: it has 1 outputs, but 2 are named)");
  refuse(model({.nodes = {node("Add", {"x", "x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}}, {},
               {opset(1, "other")}),
         R"(node "y": Add: the model does not say which version of domain "" it uses)");
  refuse<UnsupportedError>(
      with({node("Foo", {"x"}, {"a"}), node("Foo", {"a"}, {"b"}),
            node("Bar", {"b"}, {"y"}, {}, {.domain = "com.acme"})},
           {untyped("y")}),
      "2 of its ops are not supported\n  Foo: 2 nodes, \"a\", \"b\"\n  com.acme.Bar: 1 node, \"y\""
      "\n  hint: an op that is not known is kept as it is where the file declares, as value_info, which "
      "tensors "
      "its outputs are");
  refuse<UnsupportedError>(model({.inputs = {kX}, .outputs = {untyped("x")}}, {}, {opset(29)}),
                           "the model uses opset 29, but the newest we know is 28");
  const GraphParts relu = {.nodes = {node("Relu", {"x"}, {"y"})}, .inputs = {kX}, .outputs = {kY}};
  refuse(model(relu, {}, {opset(0)}),
         R"(node "y": Relu: the model uses version 0 of domain "", but the first is 1)");
  import(model(relu, {}, {opset(0), opset(7, "ai.onnx")}));
  refuse(with({node("", {"x"}, {"y"})}), R"(node "y": it does not say which op it is)");
}

TEST(OnnxGraph, TrustsLittleOfWhatIsSaidOfSequences) {
  // A name, or no dimension at all, is said of elements that differ.
  const auto type = [](const std::vector<Size>& sizes) {
    return to_string(import(model({.inputs = {value("x", sequence_type(tensor_type(kFloat, sizes)))},
                                   .outputs = {untyped("x")}}))
                         ->input(0)
                         .type());
  };
  EXPECT_EQ(type({"n", 2}), "seq<f32[?,2]>");
  EXPECT_EQ(type({}), "seq<f32[*]>");
}

TEST(OnnxGraph, SkipsHintsThatSayNothing) {
  const auto hinted = [](const Bytes& type) {
    return model({.nodes = {node("Add", {"x", "x"}, {"t"}), node("Add", {"t", "t"}, {"y"})},
                  .inputs = {kX},
                  .outputs = {value("y", kFloat, {2})},
                  .value_info = {value("t", type)}});
  };
  const Bytes undefined = block(1, number(1, 0)), map = block(5, number(1, 7) + block(2, undefined)),
              opaque = block(7, ""), sparse = block(8, number(1, 1));
  for (const Bytes& type :
       {undefined, sequence_type(undefined), optional_type(undefined), map, opaque, sparse})
    expect_tensor(run(hinted(type), {kInput}), f32({2}, {4, 8}));
  // What is fed has no other type.
  refuse(model({.inputs = {value("x", undefined)}, .outputs = {untyped("x")}}),
         "data type 0 is not one of ONNX, wanted 1 to 26");
}

TEST(OnnxGraph, IsOfTheFirstOpsetWhereItIsTooOldToSay) {
  const Bytes graph = block(7, encode::graph({.nodes = {node("Softmax", {"x"}, {"y"})},
                                              .inputs = {value("x", kFloat, {1, 2, 2})},
                                              .outputs = {kY}}));
  expect_tensor(run(number(1, 2) + graph, {f32({1, 2, 2}, {0, 0, 0, 0})}),
                f32({1, 2, 2}, {0.25, 0.25, 0.25, 0.25}));
  refuse(number(1, 3) + graph,
         R"(node "y": Softmax: the model does not say which version of domain "" it uses)");
}

TEST(OnnxGraph, MakesWeightsInTheOrderOfTheNodesInputs) {
  const Messages weights = {tensor<float>("c", {}, {3}), tensor<float>("b", {}, {2}),
                            tensor<float>("a", {}, {1})};
  const auto graph = import(
      model({.nodes = {node("Range", {"a", "b", "c"}, {"y"})}, .outputs = {kY}, .initializers = weights}));
  std::vector<std::string> names;
  for (const Node* node : graph->nodes())
    names.push_back(node->result(0).name());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b", "c", "y"}));
}

TEST(OnnxGraph, HasNoWeightsThatNobodyUses) {
  const Messages weights = {tensor<float>("ratio", {}, {0.5}), tensor<float>("w", {}, {2})};
  const auto graph =
      import(model({.nodes = {node("Dropout", {"x", "w"}, {"a"}), node("Identity", {"w"}, {"b"}),
                              node("Dropout", {"a", "ratio"}, {"c"}), node("Dropout", {"c", "w"}, {"d"}),
                              node("Add", {"d", "b"}, {"y"})},
                    .inputs = {kX},
                    .outputs = {kY},
                    .initializers = weights}));
  EXPECT_EQ(print(*graph),
            "graph g(%x: f32[2]) {\n"
            "  %w: f32[] = parameter(name=\"w\", value=f32[] {2})\n"
            "  %y: f32[2] = add(%x, %w) from \"y\"\n"
            "  return %y\n"
            "}\n");
}

TEST(OnnxGraph, TakesANameForOneUnknownSizeOnly) {
  const auto counted = [](const std::string& name) {
    return model({.nodes = {node("NonZero", {"x"}, {"y"})},
                  .inputs = {value("x", kFloat, {"n"})},
                  .outputs = {value("y", kInt64, {1, name})}});
  };
  EXPECT_EQ(to_string(import(counted("found"))->outputs()[0].type()), "i64[1,found]");
  // The model says that no element is zero, but nobody will see to it.
  EXPECT_EQ(to_string(import(counted("n"))->outputs()[0].type()), "i64[1,d0]");
  expect_tensor(run(counted("n"), {f32({3}, {5, 0, 7})}), i64({1, 2}, {0, 2}));
}

TEST(OnnxGraph, QuestionMarksAreNoNames) {
  EXPECT_EQ(to_string(import(model({.inputs = {value("x", kFloat, {"?", "?", "None", "n"})},
                                    .outputs = {untyped("x")}}))
                          ->input(0)
                          .type()),
            "f32[d0,d1,d2,n]");
}

TEST(OnnxGraph, BelievesNoSizesThatAreSaidOfOutputs) {
  // They are those of the example that the model was exported with.
  const auto counted = model({.nodes = {node("NonZero", {"x"}, {"y"})},
                              .inputs = {value("x", kFloat, {"n"})},
                              .outputs = {value("y", kInt64, {1, 3})}});
  EXPECT_EQ(to_string(import(counted)->outputs()[0].type()), "i64[1,d0]");
  expect_tensor(run(counted, {f32({2}, {5, 7})}), i64({1, 2}, {0, 1}));
}

TEST(OnnxGraph, WantsTensorsWhereTheyBelong) {
  const auto given_a_sequence = [](const std::string& op, const Names& inputs) {
    return model({.nodes = {node(op, inputs, {"y"})},
                  .inputs = {kX, value("s", sequence_type(tensor_type(kFloat, {2})))},
                  .outputs = {kY}});
  };
  refuse(given_a_sequence("CastLike", {"x", "s"}),
         R"(node "y": CastLike: a tensor is wanted here, but this is seq<f32[2]>)");
  refuse(given_a_sequence("Clip", {"s"}), R"(node "y": clip: x must be a tensor, but is seq<f32[2]>)");
  refuse(given_a_sequence("Add", {"x", "s"}), R"(node "y": add: b must be a tensor, but is seq<f32[2]>)");
}

// --- sparse weights

TEST(OnnxSparse, BecomesDense) {
  const Bytes rows =
      sparse(tensor<float>("w", {2}, {5, 7}), tensor<int64_t>("", {2, 2}, {0, 1, 1, 0}), {2, 2});
  const Bytes linear = sparse(tensor<float>("w", {2}, {5, 7}), tensor<int64_t>("", {2}, {1, 2}), {2, 2});
  for (const Bytes& weight : {rows, linear})
    expect_tensor(run(model({.nodes = {node("Identity", {"w"}, {"y"})},
                             .outputs = {kY},
                             .sparse_initializers = {weight}}),
                      {}),
                  f32({2, 2}, {0, 5, 7, 0}));
  expect_tensor(run(model({.nodes = {node("Constant", {}, {"y"}, {sparse_attribute("sparse_value", rows)})},
                           .outputs = {kY}}),
                    {}),
                f32({2, 2}, {0, 5, 7, 0}));
  // Zeros cost nothing, however many.
  const Bytes zeros = sparse(tensor<float>("w", {0}, {}), tensor<int64_t>("", {0}, {}), {1 << 20, 1 << 20});
  EXPECT_EQ(
      to_string(
          import(model({.outputs = {untyped("w")}, .sparse_initializers = {zeros}}))->outputs()[0].type()),
      "f32[1048576,1048576]");
}

TEST(OnnxSparse, RefusesIndicesThatMakeNoSense) {
  const auto weight = [](const Bytes& indices, const std::vector<int64_t>& dims) {
    return model({.outputs = {untyped("w")},
                  .sparse_initializers = {sparse(tensor<float>("w", {2}, {5, 7}), indices, dims)}});
  };
  refuse(weight(tensor<int64_t>("", {2}, {1, 4}), {2, 2}),
         R"("w": index 1 of a sparse tensor lies outside [2,2])");
  refuse(weight(tensor<int64_t>("", {2}, {-1, 3}), {2, 2}),
         R"("w": index 0 of a sparse tensor lies outside [2,2])");
  refuse(weight(tensor<int64_t>("", {2, 2}, {0, 0, 0, 2}), {2, 2}),
         R"("w": index 1 of a sparse tensor lies outside [2,2])");
  refuse(weight(tensor<int64_t>("", {2}, {3, 3}), {2, 2}),
         R"("w": the indices of a sparse tensor do not ascend at 1)");
  refuse(
      weight(tensor<int64_t>("", {3}, {1, 2, 3}), {2, 2}),
      R"("w": the indices of 2 values of a sparse tensor of rank 2 must be i64[2] or i64[2,2], but are i64[3])");
  refuse<UnsupportedError>(weight(tensor<int64_t>("", {2}, {0, 1}), {1 << 20, 1 << 20}),
                           R"("w": a sparse tensor of 1099511627776 elements is too large to be made dense)");
}

}  // namespace
}  // namespace tenon::onnx
