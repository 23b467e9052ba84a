// What the opsets mean by the same reductions, softmaxes and normalisations.
#include <cmath>

#include "frontends/onnx_run.h"

namespace tenon::onnx {
namespace {

using namespace encode;

struct Case {
  int64_t opset;
  std::string op;
  Messages attributes = {};
  int outputs = 1;
};

// A model of one node, whose inputs have the types of the tensors; those of symbolic sizes where asked for.
Bytes model_of(const Case& c, const std::vector<Tensor>& tensors, bool symbolic = false) {
  Messages types;
  for (const Tensor& tensor : tensors) {
    std::vector<Size> names;
    for (int64_t axis = 0; axis < tensor.rank(); ++axis)
      names.emplace_back(fmt::format("x{}_{}", types.size(), axis));
    types.push_back(symbolic ? tensor_type(element_type(tensor.dtype()), names) : type_of_input(tensor));
  }
  return onnx::model_of(
      {.op = c.op, .types = types, .attributes = c.attributes, .opset = c.opset, .outputs = c.outputs});
}

Data run(const Case& c, const std::vector<Tensor>& inputs, bool symbolic = false) {
  return run_all(model_of(c, inputs, symbolic), Data(inputs.begin(), inputs.end()));
}

TEST(OnnxSoftmax, BeforeOpset13TakesTheAxesFromItsOwnOnAsOne) {
  const Tensor zeros = f32({1, 2, 2}, {0, 0, 0, 0});
  for (const bool symbolic : {false, true}) {
    expect_tensor(run({11, "Softmax"}, {zeros}, symbolic)[0], f32({1, 2, 2}, {0.25, 0.25, 0.25, 0.25}));
    expect_tensor(run({1, "Softmax", {int_attribute("axis", 2)}}, {zeros}, symbolic)[0],
                  f32({1, 2, 2}, {0.5, 0.5, 0.5, 0.5}));
    expect_tensor(run({13, "Softmax", {int_attribute("axis", 1)}}, {zeros}, symbolic)[0],
                  f32({1, 2, 2}, {0.5, 0.5, 0.5, 0.5}));
  }
  expect_tensor(run({11, "Hardmax", {int_attribute("axis", -2)}}, {f32({1, 2, 2}, {1, 2, 3, 3})})[0],
                f32({1, 2, 2}, {0, 0, 1, 0}));
}

TEST(OnnxReduce, TakesItsAxesFromAnAttributeOrAnInput) {
  const Tensor x = f32({2, 2}, {1, 2, 3, 4});
  const Bytes drop = int_attribute("keepdims", 0);
  expect_tensor(run({11, "ReduceSum", {ints_attribute("axes", {-1}), drop}}, {x})[0], f32({2}, {3, 7}));
  expect_tensor(run({13, "ReduceSum", {drop}}, {x, i64({1}, {-1})})[0], f32({2}, {3, 7}));
  expect_tensor(run({13, "ReduceSum", {drop}}, {x})[0], f32({}, {10}));
  expect_tensor(run({13, "ReduceSum"}, {x, i64({0}, {})})[0], f32({1, 1}, {10}));
}

TEST(OnnxReduce, WithoutAxesStillDoesTheRest) {
  const Bytes none_if_empty = int_attribute("noop_with_empty_axes", 1);
  const Tensor x = f32({2}, {-1, 2});
  expect_tensor(run({18, "ReduceSum", {none_if_empty}}, {x})[0], x);
  expect_tensor(run({18, "ReduceSumSquare", {none_if_empty}}, {x})[0], f32({2}, {1, 4}));
  expect_tensor(run({18, "ReduceL2", {none_if_empty}}, {x, i64({0}, {})}, true)[0], f32({2}, {1, 2}));
}

TEST(OnnxReduce, RefusesToGuessWhetherThereWillBeAxes) {
  refuse<UnsupportedError>(
      model_of({18, "ReduceMax"}, {f32({2}, {1, 2}), i64({1}, {0})}, true),
      R"(node "n": ReduceMax: axes that the model computes (i64[x1_0]), where none would mean all of them)");
}

TEST(OnnxReduce, OfIntegersGivesIntegers) {
  expect_tensor(run({18, "ReduceL2"}, {i64({2}, {3, 4})})[0], i64({1}, {5}));
  expect_tensor(run({18, "ReduceLogSum"}, {i64({2}, {10, 11})})[0], i64({1}, {3}));
}

TEST(OnnxBatchNormalization, TrainsInThreeWays) {
  const Tensor x = f32({2, 1}, {1, 3}), one = f32({1}, {1}), zero = f32({1}, {0});
  const std::vector<Tensor> inputs = {x, one, zero, /* mean */ zero, /* variance */ one};
  const Bytes momentum = float_attribute("momentum", 0.5), exact = float_attribute("epsilon", 0);
  const Tensor y = f32({2, 1}, {-1, 1}), mean = f32({1}, {1}), variance = f32({1}, {1});
  for (const Case& c :
       {Case{15, "BatchNormalization", {momentum, exact, int_attribute("training_mode", 1)}, 3},
        Case{9, "BatchNormalization", {momentum, exact}, 5},
        Case{6, "BatchNormalization", {momentum, exact, int_attribute("is_test", 0)}, 5}}) {
    const Data outputs = run(c, inputs);
    expect_tensor(outputs[0], y);
    expect_tensor(outputs[1], mean);
    expect_tensor(outputs[2], variance);
    if (c.outputs == 5) {  // those of the batch itself
      expect_tensor(outputs[3], f32({1}, {2}));
      expect_tensor(outputs[4], f32({1}, {1}));
    }
  }
  // One output alone is inference, also where it says that it takes none of the others.
  expect_tensor(run({9, "BatchNormalization", {exact}}, inputs)[0], x);
  const Names names = {"x0", "x1", "x2", "x3", "x4"};
  GraphParts parts = {.nodes = {node("BatchNormalization", names, {"y", "", "", "", ""}, {exact})},
                      .outputs = {untyped("y")}};
  for (size_t i = 0; i < inputs.size(); ++i)
    parts.inputs.push_back(value(names[i], type_of_input(inputs[i])));
  expect_tensor(onnx::run(model(parts, {}, {opset(9)}), Data(inputs.begin(), inputs.end())), x);
}

TEST(OnnxBatchNormalization, MayHaveStatisticsForEachElement) {
  const Tensor x = f32({1, 1, 2}, {1, 2}), zero = f32({1, 2}, {0, 0});
  const std::vector<Tensor> inputs = {x, f32({1, 2}, {10, 100}), zero, zero, f32({1, 2}, {1, 4})};
  expect_tensor(
      run({7, "BatchNormalization", {int_attribute("spatial", 0), float_attribute("epsilon", 0)}}, inputs)[0],
      f32({1, 1, 2}, {10, 100}));
}

TEST(OnnxGroupNormalization, ScalesGroupsUntilOpset20AndChannelsFrom21) {
  const Tensor x = f32({1, 4}, {1, 3, 5, 9});
  const Messages attributes = {int_attribute("num_groups", 2), float_attribute("epsilon", 0)};
  expect_tensor(run({18, "GroupNormalization", attributes}, {x, f32({2}, {1, 2}), f32({2}, {0, 5})})[0],
                f32({1, 4}, {-1, 1, 3, 7}));
  expect_tensor(
      run({21, "GroupNormalization", attributes}, {x, f32({4}, {1, 2, 3, 4}), f32({4}, {0, 0, 0, 5})})[0],
      f32({1, 4}, {-1, 2, -3, 9}));
}

TEST(OnnxLayerNormalization, GivesMeanAndInverseDeviation) {
  const Data outputs = run({17, "LayerNormalization", {float_attribute("epsilon", 0)}, 3},
                           {f32({1, 2}, {1, 5}), f32({2}, {1, 1})});
  expect_tensor(outputs[0], f32({1, 2}, {-1, 1}));
  expect_tensor(outputs[1], f32({1, 1}, {3}));
  expect_tensor(outputs[2], f32({1, 1}, {0.5}));
}

TEST(OnnxDft, TakesItsAxisFromAnAttributeOrAnInput) {
  const Tensor x = f32({1, 2, 1}, {1, 2}), y = f32({1, 2, 2}, {3, 0, -1, 0});
  expect_near(run({17, "DFT"}, {x})[0], y, 1e-12);
  expect_near(run({20, "DFT"}, {x})[0], y, 1e-12);
  expect_near(run({20, "DFT"}, {x, i64({}, {2}), i64({}, {1})})[0], y, 1e-12);
}

}  // namespace
}  // namespace tenon::onnx
