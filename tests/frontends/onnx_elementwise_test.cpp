// Elementwise ONNX ops as older opsets spell them.
#include "frontends/onnx_run.h"

namespace tenon::onnx {
namespace {

using namespace encode;

// The outputs of one node of this opset.
Data run(int64_t version, const std::string& op, const std::vector<Tensor>& inputs,
         const Messages& attributes = {}, int outputs = 1) {
  Messages types;
  for (const Tensor& input : inputs)
    types.push_back(type_of_input(input));
  return run_all(
      model_of({.op = op, .types = types, .attributes = attributes, .opset = version, .outputs = outputs}),
      Data(inputs.begin(), inputs.end()));
}

TEST(OnnxElementwise, OldBroadcastsLineUpFromAnAxis) {
  const Tensor a = f32({2, 2, 1}, {1, 2, 3, 4}), b = f32({2}, {10, 20});
  const auto add = [&](int64_t axis) {
    return run(6, "Add", {a, b}, {int_attribute("broadcast", 1), int_attribute("axis", axis)})[0];
  };
  expect_tensor(add(0), f32({2, 2, 1}, {11, 12, 23, 24}));
  expect_tensor(add(1), f32({2, 2, 1}, {11, 22, 13, 24}));
  expect_tensor(add(-2), f32({2, 2, 1}, {11, 22, 13, 24}));
  // Since opset 7 shapes line up at their ends.
  expect_tensor(run(7, "Add", {a, b})[0], f32({2, 2, 2}, {11, 21, 12, 22, 13, 23, 14, 24}));
}

TEST(OnnxElementwise, OldSlopesBelongToChannels) {
  const Tensor x = f32({1, 2, 2}, {-1, -2, -3, -4}), slope = f32({2}, {2, 3});
  expect_tensor(run(6, "PRelu", {x, slope})[0], f32({1, 2, 2}, {-2, -4, -9, -12}));
  expect_tensor(run(7, "PRelu", {x, slope})[0], f32({1, 2, 2}, {-2, -6, -6, -12}));
}

TEST(OnnxElementwise, OldCastsNameTheirType) {
  expect_tensor(run(1, "Cast", {f32({2}, {1.5, -1.5})}, {string_attribute("to", "INT64")})[0],
                i64({2}, {1, -1}));
}

TEST(OnnxElementwise, OldClipsHaveTheirBoundsAsAttributes) {
  const Tensor x = f32({3}, {-2, 0, 2});
  expect_tensor(run(6, "Clip", {x}, {float_attribute("min", -1)})[0], f32({3}, {-1, 0, 2}));
  expect_tensor(run(6, "Clip", {x}, {float_attribute("max", 1)})[0], f32({3}, {-2, 0, 1}));
}

TEST(OnnxDropout, KeepsEverythingUnlessItTrains) {
  const Tensor x = f32({2}, {1, 2});
  const Data tested = run(6, "Dropout", {x}, {int_attribute("is_test", 1)}, 2);
  expect_tensor(tested[0], x);
  expect_tensor(tested[1], f32({2}, {1, 1}));  // not yet a bool
  const Data seven = run(7, "Dropout", {x}, {float_attribute("ratio", 0.9f)});
  expect_tensor(seven[0], x);
  const Data thirteen = run(13, "Dropout", {x, f32({}, {0.9})}, {}, 2);
  expect_tensor(thirteen[0], x);
  expect_tensor(thirteen[1], tensor(DType::Bool, {2}, {1, 1}));
}

TEST(OnnxDropout, IsNothingWhereItKeepsEverythingAndNobodyWantsItsMask) {
  for (const int64_t opset : {7, 13})
    EXPECT_EQ(import(model_of({.op = "Dropout", .types = {tensor_type(kFloat, {2})}, .opset = opset}))
                  ->node_count(),
              0);
}

TEST(OnnxDropout, DrawsNothingWhereItDropsNothing) {
  const Tensor x = filled(DType::F32, {1000}, 3);
  const Data six = run(6, "Dropout", {x}, {float_attribute("ratio", 0)}, 2);
  expect_tensor(six[0], x);
  const Data twelve = run(12, "Dropout", {x, f32({}, {0}), Tensor::scalar(true)}, {}, 2);
  expect_tensor(twelve[0], x);
  expect_tensor(twelve[1], filled(DType::Bool, {1000}, 1));
}

TEST(OnnxDropout, ScalesWhatItKeepsInTraining) {
  const Data trained =
      run(6, "Dropout", {filled(DType::F32, {1000}, 3)}, {float_attribute("ratio", 0.25f)}, 2);
  const std::vector<double> y = widen<double>(trained[0].tensor()), mask = widen<double>(trained[1].tensor());
  for (size_t i = 0; i < y.size(); ++i)
    EXPECT_EQ(y[i], mask[i] * 4);
  EXPECT_NEAR(static_cast<double>(std::count(mask.begin(), mask.end(), 1)), 750, 60);
}

TEST(OnnxElementwise, CropLeavesOutBorders) {
  const Tensor image = f32({1, 1, 3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  // Left, top, right, bottom.
  expect_tensor(run(1, "Crop", {image}, {ints_attribute("border", {2, 1, 1, 0})})[0],
                f32({1, 1, 2, 1}, {7, 11}));
  expect_tensor(
      run(1, "Crop", {image}, {ints_attribute("border", {1, 1, 0, 0}), ints_attribute("scale", {1, 2})})[0],
      f32({1, 1, 1, 2}, {6, 7}));
}

}  // namespace
}  // namespace tenon::onnx
