// Folds that look right and are not: what other optimisers have got wrong, by name. Every model here goes
// through the whole pipeline, and must give the same as before; also once it is written as ONNX and read
// again.
#include "frontends/onnx/write/write.h"
#include "frontends/onnx_run.h"
#include "passes/pipeline.h"
#include "tensor/wide.h"
#include "verify/compare.h"

namespace tenon {
namespace {

using namespace onnx::encode;

// All negative, so that a zero stands out.
Data negative_inputs(const Graph& graph) {
  Data inputs;
  for (Value input : graph.inputs()) {
    const Extents extents = *input.shape().extents();
    std::vector<double> numbers(static_cast<size_t>(element_count(extents)));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = -1 - 0.25 * static_cast<double>((7 * i) % 11);
    inputs.emplace_back(narrow<double>(input.dtype(), extents, numbers));
  }
  return inputs;
}

void expect_same(const Graph& actual, const Data& inputs, const Data& expected) {
  const Data outputs = evaluate(actual, inputs);
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < outputs.size(); ++i)
    EXPECT_EQ(first_mismatch(outputs[i], expected[i], 1e-5, 1e-6), "") << print(actual);
}

// The model optimised, once it was seen to compute the same, in all budgets and as ONNX, and to be as simple
// as the pipeline makes it.
std::unique_ptr<Graph> optimised(const Bytes& model, const Data& given = {}) {
  const std::unique_ptr<Graph> original = onnx::import(model);
  const Data inputs = given.empty() ? negative_inputs(*original) : given;
  const Data expected = evaluate(*original, inputs);
  std::unique_ptr<Graph> graph;
  for (NumericsBudget budget : {NumericsBudget::Strict, NumericsBudget::Fast, NumericsBudget::Default}) {
    graph = original->clone();
    Journal journal(budget), again(budget);
    optimize(*graph, journal, {.lint_everything = true});
    expect_same(*graph, inputs, expected);
    const TemporaryFolder folder;
    onnx::write_onnx(*graph, folder / "m.onnx", {});
    expect_same(*onnx::read_onnx(folder / "m.onnx"), inputs, expected);
    optimize(*graph, again, {});
    EXPECT_TRUE(again.applications().empty()) << again.applications().front().rule;
  }
  return graph;
}

int64_t count(const Graph& graph, std::string_view op) {
  int64_t count = 0;
  for (const Node* node : graph.nodes())
    count += node->is(op);
  return count;
}

// --- padding in front of a pool

struct PaddedPool {
  std::string pool;
  Messages attributes = {};
  float value = 0;
  std::string mode = "constant";
  std::vector<int64_t> pads = {0, 0, 1, 1, 0, 0, 1, 1};
};

Bytes model_of(const PaddedPool& padded) {
  Messages attributes = padded.attributes;
  attributes.push_back(ints_attribute("kernel_shape", {3, 3}));
  return model({.nodes = {node("Pad", {"x", "pads", "value"}, {"p"}, {string_attribute("mode", padded.mode)}),
                          node(padded.pool, {"p"}, {"y"}, attributes)},
                .inputs = {value("x", kFloat, {1, 2, 3, 3})},
                .outputs = {untyped("y")},
                .initializers = {tensor<int64_t>("pads", {8}, padded.pads),
                                 tensor<float>("value", {}, {padded.value})}});
}

TEST(PeersErrors, AZeroPadIsNoPaddingOfAMaxPool) {
  EXPECT_EQ(count(*optimised(model_of({"MaxPool"})), "pad"), 1);
  EXPECT_EQ(count(*optimised(model_of({"MaxPool", {ints_attribute("pads", {1, 0, 1, 0})}})), "pad"), 1);
}

TEST(PeersErrors, AZeroPadIsPaddingOfAnAveragePoolThatCountsIt) {
  const Bytes counts = int_attribute("count_include_pad", 1), own = ints_attribute("pads", {1, 0, 1, 0});
  EXPECT_EQ(count(*optimised(model_of({"AveragePool", {counts}})), "pad"), 0);
  EXPECT_EQ(count(*optimised(model_of({"AveragePool", {counts, own}})), "pad"), 0);
  EXPECT_EQ(count(*optimised(model_of({"AveragePool"})), "pad"), 0)
      << "with padding that counts from then on";
}

TEST(PeersErrors, APoolThatWouldSeePaddingAloneKeepsItsPad) {
  const PaddedPool wide = {
      "AveragePool", {int_attribute("count_include_pad", 1)}, 0, "constant", {0, 0, 3, 1, 0, 0, 1, 1}};
  EXPECT_EQ(count(*optimised(model_of(wide)), "pad"), 1);
}

TEST(PeersErrors, OtherPadsAreNoPaddingOfAnAveragePool) {
  const Bytes counts = int_attribute("count_include_pad", 1), own = ints_attribute("pads", {1, 0, 1, 0});
  const Bytes up = int_attribute("ceil_mode", 1), strides = ints_attribute("strides", {2, 2});
  EXPECT_EQ(count(*optimised(model_of({"AveragePool", {own}})), "pad"), 1) << "some would count, some not";
  EXPECT_EQ(count(*optimised(model_of({"AveragePool", {counts, up, strides}})), "pad"), 1);
  EXPECT_EQ(count(*optimised(model_of({"AveragePool", {counts}, 1})), "pad"), 1);
  EXPECT_EQ(count(*optimised(model_of({"AveragePool", {counts}, 0, "reflect"})), "pad"), 1);
  EXPECT_EQ(
      count(*optimised(model_of({"AveragePool", {counts}, 0, "constant", {0, 0, -1, 1, 0, 0, 1, 0}})), "pad"),
      1);
  EXPECT_EQ(
      count(*optimised(model_of({"AveragePool", {counts}, 0, "constant", {0, 1, 0, 0, 0, 0, 0, 0}})), "pad"),
      1);
  EXPECT_EQ(count(*optimised(model_of({"AveragePool", {string_attribute("auto_pad", "SAME_UPPER")}})), "pad"),
            1);
}

// --- batch normalisation after a convolution

struct ConvBatchNorm {
  Messages attributes = {};
  Names outputs = {"y"};
  std::string statistics = "m";  // the name of the mean: of an initializer, or of an input
  Messages more_nodes = {};
  Names model_outputs = {"y"};
  int64_t opset = 15;
};

Bytes model_of(const ConvBatchNorm& parts) {
  Messages outputs, nodes = {node("Conv", {"x", "w"}, {"c"}),
                             node("BatchNormalization", {"c", "s", "b", parts.statistics, "v"}, parts.outputs,
                                  parts.attributes)};
  nodes.insert(nodes.end(), parts.more_nodes.begin(), parts.more_nodes.end());
  for (const std::string& name : parts.model_outputs)
    outputs.push_back(untyped(name));
  Messages inputs = {value("x", kFloat, {2, 2, 4, 4})};
  if (parts.statistics != "m")
    inputs.push_back(value(parts.statistics, kFloat, {3}));
  return model(
      {.nodes = nodes,
       .inputs = inputs,
       .outputs = outputs,
       .initializers = {tensor<float>("w", {3, 2, 1, 1}, {1, -2, 0.5, 3, -1, 0.25}),
                        tensor<float>("s", {3}, {1, 2, 0.5}), tensor<float>("b", {3}, {0.5, -1, 2}),
                        tensor<float>("m", {3}, {0.25, -0.5, 1}), tensor<float>("v", {3}, {1, 4, 0.5})}},
      {}, {opset(parts.opset)});
}

TEST(PeersErrors, ABatchNormIsFoldedWhereTheConvolutionIsItsOwn) {
  EXPECT_EQ(count(*optimised(model_of(ConvBatchNorm{})), "batch_norm"), 0);
  EXPECT_EQ(count(*optimised(model_of(ConvBatchNorm{.opset = 9})), "batch_norm"), 0);
}

TEST(PeersErrors, ASecondConsumerOfTheConvolutionStopsTheFold) {
  const std::unique_ptr<Graph> graph = optimised(
      model_of(ConvBatchNorm{.more_nodes = {node("Sin", {"c"}, {"z"})}, .model_outputs = {"y", "z"}}));
  EXPECT_EQ(count(*graph, "batch_norm"), 1);
  EXPECT_EQ(count(*graph, "conv"), 1);
}

TEST(PeersErrors, AConvolutionThatIsAnOutputStopsTheFold) {
  const std::unique_ptr<Graph> graph = optimised(model_of(ConvBatchNorm{.model_outputs = {"y", "c"}}));
  EXPECT_EQ(count(*graph, "batch_norm"), 1);
  EXPECT_EQ(count(*graph, "conv"), 1);
}

// The statistics are those of the batch, and the constants are the running ones: only averages are made of
// them.
TEST(PeersErrors, ATrainingModeStopsTheFold) {
  const Bytes training = int_attribute("training_mode", 1);
  EXPECT_EQ(count(*optimised(model_of(ConvBatchNorm{.attributes = {training}})), "batch_norm"), 1);
  EXPECT_EQ(
      count(*optimised(model_of(ConvBatchNorm{
                .attributes = {training}, .outputs = {"y", "rm", "rv"}, .model_outputs = {"y", "rm", "rv"}})),
            "batch_norm"),
      1);
  EXPECT_EQ(count(*optimised(model_of(ConvBatchNorm{
                      .outputs = {"y", "rm", "rv"}, .model_outputs = {"y", "rv", "rm"}, .opset = 9})),
                  "batch_norm"),
            1)
      << "before opset 14, who takes the statistics trains";
}

TEST(PeersErrors, StatisticsThatAreNotConstantStopTheFold) {
  EXPECT_EQ(count(*optimised(model_of(ConvBatchNorm{.statistics = "given"})), "batch_norm"), 1);
}

// --- the mask of a dropout

// What is dropped out of, and what the mask keeps of it; the mask is bool from opset 10 on.
Bytes model_with_mask(int64_t version, const Names& outputs) {
  Messages types;
  for (const std::string& name : outputs)
    types.push_back(untyped(name));
  const Bytes use =
      version < 10 ? node("Mul", {"d", "mask"}, {"y"}) : node("Where", {"mask", "d", "zero"}, {"y"});
  return model({.nodes = {node("Dropout", {"x"}, {"d", "mask"}), use},
                .inputs = {value("x", kFloat, {2, 3})},
                .outputs = types,
                .initializers = {tensor<float>("zero", {}, {0})}},
               {}, {opset(version)});
}

TEST(PeersErrors, TheMaskOfADropoutKeepsItsType) {
  for (int64_t version : {7, 10, 12, 13}) {
    SCOPED_TRACE(version);
    EXPECT_EQ(count_nodes(*optimised(model_with_mask(version, {"y"}))), 0);
    const std::unique_ptr<Graph> graph = optimised(model_with_mask(version, {"y", "mask"}));
    EXPECT_EQ(graph->outputs()[1].dtype(), version < 10 ? DType::F32 : DType::Bool);
    EXPECT_EQ(count(*graph, "mul") + count(*graph, "where"), 0);
  }
}

TEST(PeersErrors, TheMaskOfADropoutThatTrainsIsItsOwn) {
  const std::unique_ptr<Graph> graph = onnx::import(
      model({.nodes = {node("Dropout", {"x", "ratio", "train"}, {"d", "mask"}, {int_attribute("seed", 3)}),
                       node("Where", {"mask", "x", "d"}, {"y"})},
             .inputs = {value("x", kFloat, {64})},
             .outputs = {untyped("y"), untyped("mask")},
             .initializers = {tensor<float>("ratio", {}, {0.5}),
                              // A tensor of type bool: true.
                              number(2, kBool) + block(8, "train") + block(9, std::string(1, '\1'))}},
            {}, {opset(13)}));
  const Data inputs = negative_inputs(*graph), expected = evaluate(*graph, inputs);
  Journal journal;
  optimize(*graph, journal, {.lint_everything = true});
  expect_same(*graph, inputs, expected);
  EXPECT_EQ(count(*graph, "random_uniform"), 1) << print(*graph);
}

}  // namespace
}  // namespace tenon
