// Ops of ONNX Runtime's own, beside the numbers that ONNX Runtime 1.30 gives for them.
#include <cmath>

#include "frontends/onnx_run.h"
#include "tensor/packing.h"

namespace tenon::onnx {
namespace {

using namespace encode;

// An input of a node; a fixed one is part of the model.
struct Input {
  Input() = default;  // left out
  Input(Tensor given) : tensor(std::move(given)) {}
  std::optional<Tensor> tensor = {};
  bool is_fixed = false;
};

Input fixed(Tensor tensor) {
  Input input(std::move(tensor));
  input.is_fixed = true;
  return input;
}

Tensor reals(double phase, const Extents& extents) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(extents); ++i)
    values.push_back(std::sin(0.37 * static_cast<double>(i) + phase) + 0.1);
  return f32(extents, values);
}

// Scattered over 0 to 250, and the same around 0.
Tensor bytes(int64_t phase, const Extents& extents, DType dtype = DType::U8, int64_t least = 0) {
  std::vector<double> values;
  for (int64_t i = 0; i < element_count(extents); ++i)
    values.push_back(static_cast<double>((7919 * i + 31 * phase) % 251 + least));
  return tensor(dtype, extents, values);
}
Tensor signed_bytes(int64_t phase, const Extents& extents) { return bytes(phase, extents, DType::I8, -125); }

Tensor number(double value) { return f32({}, {value}); }
Tensor zero(double value) { return tensor(DType::U8, {}, {value}); }

struct OneOp {
  std::string op, domain = "com.microsoft";
  std::vector<Input> inputs;
  Messages attributes = {};
  std::vector<std::optional<Tensor>> outputs = {};
};

Bytes initializer(const std::string& name, const Tensor& tensor) {
  Bytes message;
  for (int64_t extent : tensor.extents())
    message += encode::number(1, extent);
  const std::vector<std::byte> packed = pack(tensor);
  return message + encode::number(2, element_type(tensor.dtype())) + block(8, name) +
         block(9, Bytes(reinterpret_cast<const char*>(packed.data()), packed.size()));
}

Bytes model_of(const OneOp& one) {
  GraphParts parts;
  Names inputs, outputs;
  for (const Input& input : one.inputs) {
    inputs.push_back(input.tensor ? fmt::format("x{}", inputs.size()) : "");
    if (input.is_fixed)
      parts.initializers.push_back(initializer(inputs.back(), *input.tensor));
    else if (input.tensor)
      parts.inputs.push_back(value(inputs.back(), type_of_input(*input.tensor)));
  }
  for (const auto& output : one.outputs) {
    outputs.push_back(output ? fmt::format("y{}", outputs.size()) : "");
    if (output)
      parts.outputs.push_back(untyped(outputs.back()));
  }
  parts.nodes = {node(one.op, inputs, outputs, one.attributes, {.name = "n", .domain = one.domain})};
  return model(parts, {}, {encode::opset(17), encode::opset(1, "com.microsoft")});
}

void expect_as_onnx_runtime(const OneOp& one) {
  SCOPED_TRACE(one.op);
  Data inputs;
  for (const Input& input : one.inputs)
    if (input.tensor && !input.is_fixed)
      inputs.emplace_back(*input.tensor);
  const Data results = run_all(model_of(one), inputs);
  size_t next = 0;
  for (const auto& output : one.outputs)
    if (output)
      expect_near(results.at(next++), *output, is_float(output->dtype()) ? 1e-4 : 0);
}

template <class Error = UserError>
void refuse_op(const OneOp& one, const std::string& message) {
  refuse<Error>(model_of(one), "node \"n\": " + message);
}

TEST(OnnxRuntimeOps, Activations) {
  expect_as_onnx_runtime(
      {.op = "Gelu",
       .inputs = {reals(0, {2, 3})},
       .outputs = {
           tensor(DType::F32, {2, 3}, {0.0539828, 0.312893, 0.604424, 0.836687, 0.946221, 0.908152})}});
  expect_as_onnx_runtime(
      {.op = "BiasGelu",
       .inputs = {reals(0, {2, 3}), reals(1, {3})},
       .outputs = {tensor(DType::F32, {2, 3}, {0.88647, 1.44657, 1.80152, 1.8861, 2.14362, 2.11286})}});
  expect_as_onnx_runtime(
      {.op = "FastGelu",
       .inputs = {reals(0, {2, 3}), reals(1, {3})},
       .outputs = {tensor(DType::F32, {2, 3}, {0.886303, 1.44637, 1.8015, 1.88615, 2.14387, 2.11309})}});
  expect_as_onnx_runtime({.op = "FastGelu",
                          .inputs = {reals(0, {2, 3})},
                          .outputs = {tensor(DType::F32, {2, 3},
                                             {0.0539828, 0.31288, 0.604348, 0.836536, 0.946036, 0.907978})}});
  expect_as_onnx_runtime(
      {.op = "QuickGelu",
       .inputs = {reals(0, {2, 3})},
       .outputs = {
           tensor(DType::F32, {2, 3}, {0.0542448, 0.317084, 0.610775, 0.841205, 0.948924, 0.911543})}});
  expect_as_onnx_runtime(
      {.op = "QuickGelu",
       .inputs = {reals(0, {2, 3})},
       .attributes = {float_attribute("alpha", 0.5F)},
       .outputs = {
           tensor(DType::F32, {2, 3}, {0.0512497, 0.257326, 0.461162, 0.619279, 0.694413, 0.668213})}});
}

TEST(OnnxRuntimeOps, ConvolutionsWithWhatFollows) {
  expect_as_onnx_runtime(
      {.op = "FusedConv",
       .inputs = {reals(0, {1, 2, 3, 3}), fixed(reals(1, {2, 2, 2, 2})), fixed(reals(2, {2}))},
       .attributes = {string_attribute("activation", "Relu")},
       .outputs = {tensor(DType::F32, {1, 2, 2, 2}, {3.78395, 4.15311, 3.81081, 3.14567, 0, 0, 0, 0})}});
  expect_as_onnx_runtime(
      {.op = "FusedConv",
       .inputs = {reals(0, {1, 2, 3, 3}), fixed(reals(1, {2, 2, 2, 2})), fixed(reals(2, {2}))},
       .attributes = {string_attribute("activation", "LeakyRelu"),
                      floats_attribute("activation_params", {0.2})},
       .outputs = {
           tensor(DType::F32, {1, 2, 2, 2},
                  {3.78395, 4.15311, 3.81081, 3.14567, -0.314893, -0.353408, -0.256126, -0.133496})}});
  expect_as_onnx_runtime(
      {.op = "FusedConv",
       .inputs = {reals(0, {1, 2, 3, 3}), fixed(reals(1, {2, 2, 2, 2})), fixed(reals(2, {2}))},
       .attributes = {string_attribute("activation", "Clip"),
                      floats_attribute("activation_params", {-0.5, 0.75})},
       .outputs = {tensor(DType::F32, {1, 2, 2, 2}, {0.75, 0.75, 0.75, 0.75, -0.5, -0.5, -0.5, -0.5})}});
  expect_as_onnx_runtime(
      {.op = "FusedConv",
       .inputs = {reals(0, {1, 2, 3, 3}), fixed(reals(1, {2, 2, 2, 2})), fixed(reals(2, {2}))},
       .attributes = {string_attribute("activation", "Tanh")},
       .outputs = {
           tensor(DType::F32, {1, 2, 2, 2},
                  {0.998967, 0.999506, 0.999021, 0.996302, -0.917733, -0.943284, -0.856653, -0.583321})}});
  expect_as_onnx_runtime(
      {.op = "FusedConv",
       .inputs = {reals(0, {1, 2, 3, 3}), fixed(reals(1, {2, 2, 2, 2})), fixed(reals(2, {2}))},
       .attributes = {string_attribute("activation", "Sigmoid")},
       .outputs = {
           tensor(DType::F32, {1, 2, 2, 2},
                  {0.977773, 0.984528, 0.978349, 0.958738, 0.171581, 0.145911, 0.217443, 0.339061})}});
  expect_as_onnx_runtime(
      {.op = "FusedConv",
       .inputs = {reals(0, {1, 2, 3, 3}), fixed(reals(1, {2, 2, 2, 2})), fixed(reals(2, {2}))},
       .attributes = {string_attribute("activation", "HardSigmoid"),
                      floats_attribute("activation_params", {0.25, 0.5})},
       .outputs = {tensor(DType::F32, {1, 2, 2, 2}, {1, 1, 1, 1, 0.106383, 0.0582402, 0.179843, 0.33313})}});
  expect_as_onnx_runtime(
      {.op = "FusedConv",
       .inputs = {reals(0, {1, 2, 3, 3}), fixed(reals(1, {2, 2, 2, 2})), {}, reals(3, {1, 2, 2, 2})},
       .attributes = {string_attribute("activation", "Relu")},
       .outputs = {tensor(DType::F32, {1, 2, 2, 2}, {3.01577, 3.01739, 2.33818, 1.41239, 0, 0, 0, 0})}});
  expect_as_onnx_runtime(
      {.op = "NhwcMaxPool",
       .inputs = {bytes(0, {1, 3, 3, 2})},
       .attributes = {ints_attribute("kernel_shape", {2, 2})},
       .outputs = {tensor(DType::U8, {1, 2, 2, 2}, {100, 238, 125, 238, 175, 238, 200, 238})}});
}

TEST(OnnxRuntimeOps, ProductsWithWhatFollows) {
  expect_as_onnx_runtime({.op = "FusedGemm",
                          .inputs = {reals(0, {2, 3}), reals(1, {2, 3}), reals(2, {2})},
                          .attributes = {string_attribute("activation", "Relu"), int_attribute("transB", 1),
                                         float_attribute("alpha", 0.5F)},
                          .outputs = {tensor(DType::F32, {2, 2}, {1.72595, 1.16008, 2.64586, 1.87132})}});
  expect_as_onnx_runtime({.op = "FusedGemm",
                          .inputs = {reals(0, {2, 3}), reals(1, {3, 2})},
                          .attributes = {string_attribute("activation", "LeakyRelu"),
                                         float_attribute("activation_alpha", 0.25F)},
                          .outputs = {tensor(DType::F32, {2, 2}, {1.14846, 0.850292, 2.88539, 2.53647})}});
  expect_as_onnx_runtime({.op = "FusedMatMul",
                          .inputs = {reals(0, {2, 2, 3}), reals(1, {2, 3, 2})},
                          .attributes = {float_attribute("alpha", 0.5F)},
                          .outputs = {tensor(DType::F32, {2, 2, 2},
                                             {0.574232, 0.425146, 1.44269, 1.26823, -0.313134, -0.525193,
                                              0.449738, 0.485598})}});
  expect_as_onnx_runtime(
      {.op = "FusedMatMul",
       .inputs = {reals(0, {2, 3, 2}), reals(1, {2, 2, 3})},
       .attributes = {int_attribute("transA", 1), int_attribute("transB", 1)},
       .outputs = {tensor(DType::F32, {2, 2, 2},
                          {2.12013, 1.07357, 2.66211, 1.5648, 0.196666, -0.635011, 0.484101, 0.148263})}});
  expect_as_onnx_runtime(
      {.op = "FusedMatMul",
       .inputs = {reals(0, {3, 2, 2}), reals(1, {2, 2, 2})},
       .attributes = {int_attribute("transBatchA", 1)},
       .outputs = {tensor(DType::F32, {2, 3, 2},
                          {0.595332, 0.550273, 2.18399, 2.20028, 0.169396, 0.21938, 0.574711, -0.0320767,
                           0.654008, 0.139261, -0.322249, 0.0671419})}});
  expect_as_onnx_runtime({.op = "FusedMatMul",
                          .inputs = {reals(0, {2, 2, 3}), reals(1, {3, 2, 3})},
                          .attributes = {int_attribute("transBatchA", 1), int_attribute("transBatchB", 1),
                                         int_attribute("transB", 1)},
                          .outputs = {tensor(DType::F32, {2, 2, 3},
                                             {1.43331, -0.639642, -0.231209, 1.82265, -0.365499, -0.802697,
                                              2.14809, -2.69843, 2.12638, -0.662195, 1.04535, -0.992549})}});
  expect_as_onnx_runtime({.op = "FusedMatMul",
                          .inputs = {reals(0, {3}), reals(1, {3, 2})},
                          .attributes = {int_attribute("transA", 1)},
                          .outputs = {tensor(DType::F32, {2}, {1.14846, 0.850292})}});
  expect_as_onnx_runtime({.op = "TransposeMatMul",
                          .inputs = {reals(0, {3, 2}), reals(1, {3, 2})},
                          .attributes = {int_attribute("transA", 1)},
                          .outputs = {tensor(DType::F32, {2, 2}, {1.71768, 1.27448, 2.27379, 1.86372})}});
}

TEST(OnnxRuntimeOps, NormalisedSums) {
  expect_as_onnx_runtime(
      {.op = "SkipLayerNormalization",
       .inputs = {reals(0, {1, 2, 4}), reals(1, {1, 2, 4}), reals(2, {4}), reals(3, {4}), reals(4, {4})},
       .outputs = {
           tensor(DType::F32, {1, 2, 4},
                  {-1.22388, -0.393648, -0.173973, -0.566445, 1.58736, 0.246266, -0.691457, -0.899859}),
           {},
           {},
           tensor(DType::F32, {1, 2, 4},
                  {0.384669, 0.699568, 0.960388, 1.13183, 1.15345, 0.606798, 0.0186196, -0.531475})}});
  expect_as_onnx_runtime({.op = "SkipLayerNormalization",
                          .inputs = {reals(0, {2, 2, 4}), reals(1, {2, 4}), reals(2, {4})},
                          .attributes = {float_attribute("epsilon", 0.001F)},
                          .outputs = {tensor(DType::F32, {2, 2, 4},
                                             {-1.57316, -0.12852, 0.357782, 0.130405, 1.2194, 0.460998,
                                              -0.169972, -0.189502, 1.21666, 0.459964, -0.169591, -0.189077,
                                              1.51112, 0.205833, -0.319198, -0.145419})}});
  expect_as_onnx_runtime(
      {.op = "SkipSimplifiedLayerNormalization",
       .inputs = {reals(0, {1, 2, 4}), reals(1, {1, 2, 4}), reals(2, {4}), reals(4, {4})},
       .outputs = {
           tensor(DType::F32, {1, 2, 4},
                  {0.460701, 0.661841, 0.559423, 0.176729, 1.65408, 0.687369, 0.0129863, -0.099365}),
           {},
           {},
           tensor(DType::F32, {1, 2, 4},
                  {0.384669, 0.699568, 0.960388, 1.13183, 1.15345, 0.606798, 0.0186196, -0.531475})}});
  expect_as_onnx_runtime(
      {.op = "SimplifiedLayerNormalization",
       .domain = "",
       .inputs = {reals(0, {2, 4}), reals(2, {4})},
       .attributes = {float_attribute("epsilon", 0.001F)},
       .outputs = {tensor(DType::F32, {2, 4},
                          {0.149709, 0.545909, 0.563783, 0.194344, 1.17832, 0.9014, 0.468858, 0.0874802})}});
}

TEST(OnnxRuntimeOps, Embeddings) {
  expect_as_onnx_runtime(
      {.op = "EmbedLayerNormalization",
       .inputs = {tensor(DType::I32, {2, 3}, {1, 2, 0, 3, 1, 1}),
                  tensor(DType::I32, {2, 3}, {0, 1, 1, 0, 0, 1}), fixed(reals(0, {4, 2})),
                  fixed(reals(1, {5, 2})), fixed(reals(2, {2, 2})), fixed(reals(3, {2})),
                  fixed(reals(4, {2})), tensor(DType::I32, {2, 3}, {1, 1, 0, 1, 0, 0})},
       .outputs = {tensor(DType::F32, {2, 3, 2},
                          {-0.897922, -0.968382, -0.415682, -0.715529, -0.415682, -0.715529, -0.415683,
                           -0.715529, -0.415682, -0.715529, -0.415682, -0.715529}),
                   tensor(DType::I32, {2}, {2, 1})}});
  expect_as_onnx_runtime(
      {.op = "EmbedLayerNormalization",
       .inputs = {tensor(DType::I32, {2, 3}, {1, 2, 0, 3, 1, 1}),
                  {},
                  fixed(reals(0, {4, 2})),
                  fixed(reals(1, {5, 2})),
                  {},
                  fixed(reals(3, {2})),
                  fixed(reals(4, {2})),
                  {},
                  tensor(DType::I32, {1, 3}, {2, 0, 4})},
       .outputs = {tensor(DType::F32, {2, 3, 2},
                          {-0.415683, -0.715529, -0.897923, -0.968382, -0.897923, -0.968382, -0.415682,
                           -0.715529, -0.897922, -0.968382, -0.897923, -0.968382}),
                   tensor(DType::I32, {2}, {0, 0}),
                   tensor(DType::F32, {2, 3, 2},
                          {1.48866, 1.38318, 2.03735, 2.14118, -0.530058, -0.36616, 1.61094, 1.01152, 1.71576,
                           2.07561, 0.14423, 0.167923})}});
}

TEST(OnnxRuntimeOps, StandardOpsUnderAnotherName) {
  expect_as_onnx_runtime(
      {.op = "Trilu",
       .inputs = {reals(0, {2, 3}), tensor(DType::I64, {}, {1})},
       .attributes = {int_attribute("upper", 0)},
       .outputs = {tensor(DType::F32, {2, 3}, {0.1, 0.461615, 0, 0.995699, 1.09588, 1.06128})}});
  expect_as_onnx_runtime({.op = "GatherND",
                          .inputs = {reals(0, {2, 3}), tensor(DType::I64, {2, 2}, {0, 1, 1, 2})},
                          .outputs = {tensor(DType::F32, {2}, {0.461615, 1.06128})}});
  expect_as_onnx_runtime({.op = "Range",
                          .inputs = {number(1), number(6), number(2)},
                          .outputs = {tensor(DType::F32, {3}, {1, 3, 5})}});
  expect_as_onnx_runtime(
      {.op = "Pad",
       .inputs = {reals(0, {1, 2}), fixed(tensor(DType::I64, {4}, {1, 0, 0, 1})), number(0.5)},
       .attributes = {string_attribute("mode", "constant")},
       .outputs = {tensor(DType::F32, {2, 3}, {0.5, 0.5, 0.5, 0.1, 0.461615, 0.5})}});
  expect_as_onnx_runtime(
      {.op = "GridSample",
       .inputs = {reals(0, {1, 1, 3, 3}), reals(1, {1, 2, 2, 2})},
       .attributes = {string_attribute("mode", "bilinear"), int_attribute("align_corners", 1)},
       .outputs = {tensor(DType::F32, {1, 1, 2, 2}, {0.27667, 0.286438, 0.802844, 0.886094})}});
  expect_as_onnx_runtime({.op = "QuantizeLinear",
                          .inputs = {reals(0, {2, 3}), number(0.1), zero(7)},
                          .outputs = {tensor(DType::U8, {2, 3}, {8, 12, 15, 17, 18, 18})}});
  expect_as_onnx_runtime(
      {.op = "DequantizeLinear",
       .inputs = {bytes(0, {2, 3}), tensor(DType::F32, {2}, {0.5, 0.25}), tensor(DType::U8, {2}, {3, 200})},
       .attributes = {int_attribute("axis", 0)},
       .outputs = {tensor(DType::F32, {2, 3}, {-1.5, 67.5, 11, -9.25, -37.5, -3})}});
}

TEST(OnnxRuntimeOps, QuantisedElements) {
  expect_as_onnx_runtime({.op = "QLinearAdd",
                          .inputs = {bytes(0, {2, 3}), number(0.1), zero(12), bytes(1, {3}), number(0.2),
                                     zero(130), number(0.15), zero(90)},
                          .outputs = {tensor(DType::U8, {2, 3}, {0, 226, 0, 59, 167, 109})}});
  expect_as_onnx_runtime(
      {.op = "QLinearMul",
       .inputs = {signed_bytes(0, {2, 3}), number(0.1), tensor(DType::I8, {}, {-5}), signed_bytes(1, {2, 3}),
                  number(0.02), tensor(DType::I8, {}, {13}), number(0.2), tensor(DType::I8, {}, {9})},
       .outputs = {tensor(DType::I8, {2, 3}, {127, 15, 87, 33, 49, 64})}});
  expect_as_onnx_runtime({.op = "QLinearLeakyRelu",
                          .inputs = {bytes(0, {2, 3}), fixed(number(0.1)), fixed(zero(120)),
                                     fixed(number(0.05)), fixed(zero(30))},
                          .attributes = {float_attribute("alpha", 0.25F)},
                          .outputs = {tensor(DType::U8, {2, 3}, {0, 66, 0, 116, 0, 166})}});
  expect_as_onnx_runtime({.op = "QLinearSigmoid",
                          .inputs = {bytes(0, {2, 3}), fixed(number(0.05)), fixed(zero(120)),
                                     fixed(number(0.00390625)), fixed(zero(0))},
                          .outputs = {tensor(DType::U8, {2, 3}, {1, 182, 2, 229, 8, 248})}});
  expect_as_onnx_runtime(
      {.op = "QLinearConcat",
       .inputs = {fixed(number(0.1)), fixed(zero(100)), bytes(0, {2, 2}), fixed(number(0.1)),
                  fixed(zero(100)), bytes(1, {2, 3}), fixed(number(0.2)), fixed(zero(120))},
       .attributes = {int_attribute("axis", 1)},
       .outputs = {tensor(DType::U8, {2, 5}, {0, 138, 0, 198, 0, 25, 163, 248, 22, 255})}});
  expect_as_onnx_runtime(
      {.op = "QLinearWhere",
       .inputs = {tensor(DType::Bool, {1, 3}, {1, 0, 1}), bytes(0, {2, 3}), number(0.1), zero(100),
                  bytes(1, {2, 3}), number(0.2), zero(90), number(0.15), zero(95)},
       .outputs = {tensor(DType::U8, {2, 3}, {28, 200, 45, 137, 83, 154})}});
}

TEST(OnnxRuntimeOps, QuantisedPools) {
  expect_as_onnx_runtime({.op = "QLinearGlobalAveragePool",
                          .inputs = {bytes(0, {1, 2, 3, 3}), number(0.1), zero(100), number(0.07), zero(90)},
                          .outputs = {tensor(DType::U8, {1, 2, 1, 1}, {98, 120})}});
  expect_as_onnx_runtime({.op = "QLinearGlobalAveragePool",
                          .inputs = {bytes(0, {1, 3, 3, 2}), number(0.1), zero(100), number(0.07), zero(90)},
                          .attributes = {int_attribute("channels_last", 1)},
                          .outputs = {tensor(DType::U8, {1, 1, 1, 2}, {90, 128})}});
  expect_as_onnx_runtime(
      {.op = "QLinearAveragePool",
       .inputs = {bytes(0, {1, 1, 4, 4}), number(0.1), zero(100), number(0.07), zero(90)},
       .attributes = {ints_attribute("kernel_shape", {3, 3}), ints_attribute("strides", {2, 2}),
                      ints_attribute("pads", {1, 1, 1, 1})},
       .outputs = {tensor(DType::U8, {1, 1, 2, 2}, {81, 138, 129, 126})}});
  expect_as_onnx_runtime(
      {.op = "QLinearAveragePool",
       .inputs = {bytes(0, {1, 3, 3, 2}), number(0.1), zero(100), number(0.07), zero(90)},
       .attributes = {ints_attribute("kernel_shape", {2, 2}), int_attribute("channels_last", 1)},
       .outputs = {tensor(DType::U8, {1, 2, 2, 2}, {19, 216, 54, 162, 126, 144, 161, 90})}});
}

TEST(OnnxRuntimeOps, QuantisedProducts) {
  expect_as_onnx_runtime(
      {.op = "QLinearConv",
       .inputs = {bytes(0, {1, 3, 3, 2}), fixed(number(0.1)), fixed(zero(100)),
                  fixed(signed_bytes(1, {2, 2, 2, 2})), fixed(tensor(DType::F32, {2}, {0.01, 0.02})),
                  fixed(tensor(DType::I8, {2}, {0, 0})), fixed(number(1.5)), fixed(zero(120)),
                  fixed(tensor(DType::I32, {2}, {30, -40}))},
       .attributes = {int_attribute("channels_last", 1)},
       .outputs = {tensor(DType::U8, {1, 2, 2, 2}, {138, 133, 119, 140, 126, 106, 112, 122})}});
  expect_as_onnx_runtime({.op = "MatMulIntegerToFloat",
                          .inputs = {bytes(0, {2, 3}), fixed(signed_bytes(1, {3, 2})), number(0.1),
                                     fixed(tensor(DType::F32, {2}, {0.01, 0.02})), zero(100),
                                     fixed(tensor(DType::I8, {2}, {3, -4})), fixed(reals(0, {2}))},
                          .outputs = {tensor(DType::F32, {2, 2}, {10.589, -18.2904, -6.547, 16.4576})}});
  expect_as_onnx_runtime({.op = "DynamicQuantizeMatMul",
                          .inputs = {reals(0, {2, 3}), fixed(signed_bytes(1, {3, 2})),
                                     fixed(tensor(DType::F32, {2}, {0.01, 0.02})),
                                     fixed(tensor(DType::I8, {2}, {3, -4})), fixed(reals(0, {2}))},
                          .outputs = {tensor(DType::F32, {2, 2}, {-0.690538, 2.74406, -2.15507, 5.0993})}});
  expect_as_onnx_runtime({.op = "DynamicQuantizeMatMul",
                          .inputs = {reals(0, {2, 3}), fixed(bytes(1, {3, 2})), fixed(number(0.01))},
                          .outputs = {tensor(DType::F32, {2, 2}, {0.914738, 2.75324, 1.78259, 6.13569})}});
  expect_as_onnx_runtime(
      {.op = "QGemm",
       .inputs = {bytes(0, {2, 3}), fixed(number(0.1)), fixed(zero(100)), fixed(signed_bytes(1, {2, 3})),
                  fixed(tensor(DType::F32, {2}, {0.01, 0.02})), fixed(tensor(DType::I8, {2}, {0, 0})),
                  fixed(tensor(DType::I32, {2}, {30, -40})), fixed(number(0.25)), fixed(zero(120))},
       .attributes = {int_attribute("transB", 1)},
       .outputs = {tensor(DType::U8, {2, 2}, {185, 0, 63, 238})}});
  expect_as_onnx_runtime(
      {.op = "QGemm",
       .inputs = {bytes(0, {2, 3}), fixed(number(0.1)), fixed(zero(100)), fixed(signed_bytes(1, {3, 2})),
                  fixed(number(0.01)), fixed(tensor(DType::I8, {}, {0}))},
       .attributes = {float_attribute("alpha", 0.5F)},
       .outputs = {tensor(DType::F32, {2, 2}, {5.039, -4.414, -3.172, 3.797})}});
}

TEST(OnnxRuntimeOps, WeightsOfFewBits) {
  expect_as_onnx_runtime(
      {.op = "MatMulNBits",
       .inputs = {reals(0, {2, 32}), fixed(bytes(1, {2, 2, 8})), fixed(reals(2, {4}))},
       .attributes = {int_attribute("K", 32), int_attribute("N", 2), int_attribute("block_size", 16)},
       .outputs = {tensor(DType::F32, {2, 2}, {-25.5297, 2.85219, -21.6304, 1.50741})}});
  expect_as_onnx_runtime({.op = "MatMulNBits",
                          .inputs = {reals(0, {2, 40}),
                                     fixed(bytes(1, {2, 3, 8})),
                                     fixed(reals(2, {6})),
                                     fixed(bytes(3, {4})),
                                     {},
                                     fixed(reals(4, {2}))},
                          .attributes = {int_attribute("K", 40), int_attribute("N", 2),
                                         int_attribute("block_size", 16), int_attribute("bits", 4)},
                          .outputs = {tensor(DType::F32, {2, 2}, {-30.94, -2.56415, 15.0102, -3.51523})}});
  expect_as_onnx_runtime(
      {.op = "MatMulNBits",
       .inputs = {reals(0, {1, 32}), fixed(bytes(1, {2, 2, 8})), fixed(reals(2, {4})), fixed(reals(3, {4}))},
       .attributes = {int_attribute("K", 32), int_attribute("N", 2), int_attribute("block_size", 16),
                      int_attribute("bits", 4)},
       .outputs = {tensor(DType::F32, {1, 2}, {4.36308, 13.5496})}});
  expect_as_onnx_runtime(
      {.op = "MatMulNBits",
       .inputs = {reals(0, {1, 32}), fixed(bytes(1, {2, 2, 16})), fixed(reals(2, {4})), fixed(bytes(3, {4}))},
       .attributes = {int_attribute("K", 32), int_attribute("N", 2), int_attribute("block_size", 16),
                      int_attribute("bits", 8)},
       .outputs = {tensor(DType::F32, {1, 2}, {-22.6995, -6.35123})}});
  expect_as_onnx_runtime({.op = "MatMulNBits",
                          .inputs = {reals(0, {1, 32}), fixed(bytes(1, {2, 1, 8})), fixed(reals(2, {2}))},
                          .attributes = {int_attribute("K", 32), int_attribute("N", 2),
                                         int_attribute("block_size", 32), int_attribute("bits", 2)},
                          .outputs = {tensor(DType::F32, {1, 2}, {0.574197, -8.38803})}});
  expect_as_onnx_runtime(
      {.op = "GatherBlockQuantized",
       .inputs = {fixed(bytes(0, {3, 8})), tensor(DType::I64, {1}, {2}), fixed(reals(1, {3, 1}))},
       .attributes = {int_attribute("block_size", 16), int_attribute("quantize_axis", 1)},
       .outputs = {tensor(DType::F32, {1, 16},
                          {0, 4.34288, -1.08572, -3.25716, -7.60003, 6.51432, -8.68575, -1.08572, 2.17144,
                           7.60003, 1.08572, 0, 0, -7.60003, -6.51432, 2.17144})}});
  expect_as_onnx_runtime(
      {.op = "GatherBlockQuantized",
       .inputs = {fixed(bytes(0, {3, 16})), tensor(DType::I64, {1}, {1}), fixed(reals(1, {3, 2})),
                  fixed(bytes(2, {3, 1}))},
       .attributes = {int_attribute("block_size", 16), int_attribute("quantize_axis", 1),
                      int_attribute("bits", 4)},
       .outputs = {
           tensor(DType::F32, {1, 32},
                  {0,        4.34288,  -1.08572,  -3.25716,  -7.60003, 6.51432,  -8.68575,  -1.08572,
                   2.17144,  7.60003,  1.08572,   0,         0,        -7.60003, -6.51432,  2.17144,
                   -10.5393, -8.62306, -0.958118, -0.958118, -1.91624, -7.66494, -7.66494,  0.958118,
                   -8.62306, -5.74871, 0.958118,  1.91624,   0,        -4.79059, -0.958118, -11.4974})}});
}

TEST(OnnxRuntimeOps, Attention) {
  expect_as_onnx_runtime(
      {.op = "Attention",
       .inputs = {reals(0, {2, 3, 4}), fixed(reals(1, {4, 12})), fixed(reals(2, {12}))},
       .attributes = {int_attribute("num_heads", 2)},
       .outputs = {tensor(
           DType::F32, {2, 3, 4},
           {-0.756555, -0.748504, -0.548894, -0.241325, -0.749975, -0.748687, -0.599451, -0.341229,
            -0.784318, -0.747844, -0.563344, -0.269935, -0.967561, -0.747159, -0.364413, 0.0831395,
            -0.911451, -0.756936, -0.383209, 0.0543729, -0.886871, -0.761147, -0.423759, -0.00438538})}});
  expect_as_onnx_runtime(
      {.op = "Attention",
       .inputs = {reals(0, {2, 3, 4}), fixed(reals(1, {4, 12})), fixed(reals(2, {12}))},
       .attributes = {int_attribute("num_heads", 2), int_attribute("unidirectional", 1)},
       .outputs = {tensor(
           DType::F32, {2, 3, 4},
           {-1.10131,  -0.756983, -0.265106, 0.307743,  -0.80353,  -0.761054, -0.511452, -0.133874,
            -0.784318, -0.747844, -0.563344, -0.269935, -0.961417, -0.716892, -0.404035, -0.0651905,
            -1.04927,  -0.733112, -0.31951,  0.136518,  -0.886871, -0.761147, -0.423759, -0.00438538})}});
  expect_as_onnx_runtime(
      {.op = "Attention",
       .inputs = {reals(0, {2, 3, 4}), fixed(reals(1, {4, 12})), fixed(reals(2, {12})),
                  tensor(DType::I32, {2, 3}, {1, 1, 0, 1, 0, 1})},
       .attributes = {int_attribute("num_heads", 2)},
       .outputs = {tensor(
           DType::F32, {2, 3, 4},
           {-0.814598, -0.760903, -0.456025, -0.0345114, -0.80353,  -0.761054, -0.511452, -0.133874,
            -0.861286, -0.760265, -0.469967, -0.0595051, -0.901316, -0.746466, -0.445265, -0.076662,
            -0.877562, -0.758154, -0.45248,  -0.0786696, -0.869764, -0.761991, -0.466751, -0.0826401})}});
  expect_as_onnx_runtime(
      {.op = "Attention",
       .inputs = {reals(0, {2, 3, 4}), fixed(reals(1, {4, 12})), fixed(reals(2, {12})),
                  tensor(DType::I32, {2}, {2, 1})},
       .attributes = {int_attribute("num_heads", 2)},
       .outputs = {tensor(
           DType::F32, {2, 3, 4},
           {-0.814598, -0.760903, -0.456025, -0.0345114, -0.80353,  -0.761054, -0.511452, -0.133874,
            -0.861286, -0.760265, -0.469967, -0.0595051, -0.961417, -0.716892, -0.404035, -0.0651905,
            -0.961417, -0.716892, -0.404035, -0.0651905, -0.961417, -0.716892, -0.404035, -0.0651905})}});
  expect_as_onnx_runtime(
      {.op = "Attention",
       .inputs = {reals(0, {2, 3, 4}), fixed(reals(1, {4, 12})), fixed(reals(2, {12})),
                  tensor(DType::I32, {4}, {2, 3, 0, 1})},
       .attributes = {int_attribute("num_heads", 2)},
       .outputs = {tensor(
           DType::F32, {2, 3, 4},
           {-0.814598, -0.760903, -0.456025, -0.0345114, -0.80353,  -0.761054, -0.511452, -0.133874,
            -0.861286, -0.760265, -0.469967, -0.0595051, -0.969936, -0.758857, -0.343963, 0.159696,
            -0.904098, -0.762829, -0.373293, 0.111297,   -0.881768, -0.764176, -0.430606, 0.016722})}});
  expect_as_onnx_runtime(
      {.op = "Attention",
       .inputs = {reals(0, {2, 3, 4}),
                  fixed(reals(1, {4, 12})),
                  fixed(reals(2, {12})),
                  {},
                  reals(3, {2, 2, 2, 1, 2})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("unidirectional", 1)},
       .outputs = {
           tensor(DType::F32, {2, 3, 4},
                  {-0.379742, -0.0190355, 0.188838,  0.602744,   -0.60931,  -0.460132, -0.116391, 0.232297,
                   -0.636665, -0.514757,  -0.288227, 0.00771894, 0.0250119, 0.189194,  0.229756,  0.34206,
                   -0.353218, -0.115486,  0.142822,  0.383739,   -0.763305, -0.640323, 0.0710701, 0.288858}),
           tensor(
               DType::F32, {2, 2, 2, 4, 2},
               {0.24112,   -0.126427, -0.477845, -0.917134,  0.545106,  0.0854856, 0.260781,  -0.00608671,
                -0.463327, -0.723984, -1.1872,   -1.2515,    -0.322393, -0.623326, -0.271281, -0.498909,
                -0.873119, -0.890547, -0.813729, -1.02531,   -0.72426,  -1.11857,  0.366475,  -0.116256,
                -0.773908, -0.538991, -1.12682,  -1.10452,   -1.33308,  -1.33876,  -0.514943, -0.775627,
                -0.217589, 0.146798,  -1.10131,  -0.756983,  -0.776584, -0.761423, -0.658162, -0.727486,
                0.50485,   0.808108,  -0.265106, 0.307743,   -0.579895, -0.256571, -0.697498, -0.572257,
                1.01553,   1.09903,   -0.961417, -0.716892,  -1.13483,  -0.748908, -0.863025, -0.765307,
                1.04733,   0.867401,  -0.404035, -0.0651905, -0.233215, 0.342449,  -0.495701, -0.0906949})}});
  expect_as_onnx_runtime(
      {.op = "Attention",
       .inputs = {reals(0, {2, 3, 4}),
                  fixed(reals(1, {4, 12})),
                  fixed(reals(2, {12})),
                  {},
                  {},
                  reals(4, {1, 2, 3, 3})},
       .attributes = {int_attribute("num_heads", 2), float_attribute("scale", 0.5F)},
       .outputs = {
           tensor(DType::F32, {2, 3, 4},
                  {-0.781381, -0.748727, -0.547441, -0.238178, -0.744859, -0.745492, -0.548861, -0.236719,
                   -0.762768, -0.744707, -0.507691, -0.157708, -0.975026, -0.744003, -0.366349, 0.0833746,
                   -0.918035, -0.756647, -0.372199, 0.0598828, -0.895684, -0.760517, -0.399553, 0.01704})}});
  expect_as_onnx_runtime(
      {.op = "Attention",
       .inputs = {reals(0, {2, 3, 4}), fixed(reals(1, {4, 10})), fixed(reals(2, {10}))},
       .attributes = {int_attribute("num_heads", 2), ints_attribute("qkv_hidden_sizes", {4, 4, 2})},
       .outputs = {tensor(DType::F32, {2, 3, 2},
                          {-0.626645, -0.65004, -0.610316, -0.613786, -0.631291, -0.727053, -0.624186,
                           -0.612478, -0.56188, -0.581697, -0.551456, -0.587532})}});
  expect_as_onnx_runtime(
      {.op = "QAttention",
       .inputs = {bytes(0, {2, 3, 4}), fixed(signed_bytes(1, {4, 12})), fixed(reals(2, {12})),
                  fixed(number(0.01)), fixed(number(0.01)), tensor(DType::I32, {2, 3}, {1, 1, 0, 1, 0, 1}),
                  fixed(zero(100)), fixed(tensor(DType::I8, {}, {3}))},
       .attributes = {int_attribute("num_heads", 2)},
       .outputs = {
           tensor(DType::F32, {2, 3, 4},
                  {-2.14643, 1.47467,  -1.72726, 2.04267,  -2.14668, 1.47455,  -1.72051,  2.09165,
                   -2.18962, 1.45495,  -1.73129, 2.01345,  -1.86032, -1.21474, -0.982519, -0.207528,
                   -1.87179, -1.20901, -1.03244, -0.16755, -1.1217,  -1.58355, -0.835123, -0.32556})}});
}

TEST(OnnxRuntimeOps, AttentionOfManyHeads) {
  expect_as_onnx_runtime({.op = "MultiHeadAttention",
                          .inputs = {reals(0, {1, 2, 4}), reals(1, {1, 3, 4}), reals(2, {1, 3, 4})},
                          .attributes = {int_attribute("num_heads", 2)},
                          .outputs = {tensor(DType::F32, {1, 2, 4},
                                             {0.180906, 0.0095619, 0.206197, -0.0604424, 0.530192, 0.300786,
                                              0.146727, -0.0987345})}});
  expect_as_onnx_runtime(
      {.op = "MultiHeadAttention",
       .inputs = {reals(0, {1, 2, 4}), reals(1, {1, 3, 4}), reals(2, {1, 3, 4}), fixed(reals(3, {12})),
                  tensor(DType::I32, {1, 3}, {1, 0, 1})},
       .attributes = {int_attribute("num_heads", 2)},
       .outputs = {tensor(DType::F32, {1, 2, 4},
                          {0.221703, 0.485188, 0.700076, 0.863341, 0.678476, 0.852916, 0.636141, 0.84683})}});
  expect_as_onnx_runtime(
      {.op = "MultiHeadAttention",
       .inputs =
           {reals(0, {1, 2, 4}), reals(1, {1, 3, 4}), reals(2, {1, 3, 4}), {}, {}, reals(4, {1, 2, 2, 3})},
       .attributes = {int_attribute("num_heads", 2), float_attribute("scale", 0.5F)},
       .outputs = {
           tensor(DType::F32, {1, 2, 4},
                  {0.203453, 0.0358859, -0.0379764, -0.190637, 0.307082, 0.101622, 0.0038094, -0.182587})}});
  expect_as_onnx_runtime(
      {.op = "MultiHeadAttention",
       .inputs = {reals(0, {1, 2, 4}),
                  reals(1, {1, 2, 4}),
                  reals(2, {1, 2, 4}),
                  {},
                  {},
                  {},
                  reals(4, {1, 2, 1, 2}),
                  reals(5, {1, 2, 1, 2})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("unidirectional", 1)},
       .outputs = {tensor(DType::F32, {1, 2, 4},
                          {0.40599, 0.316519, 0.411148, 0.113676, 0.532604, 0.303242, 0.149452, -0.0951566}),
                   tensor(DType::F32, {1, 2, 3, 2},
                          {-0.656802, -0.841955, 0.941471, 1.07991, 0.714374, 0.387478, -0.899619, -0.821989,
                           1.08572, 0.958118, 0.021673, -0.333531}),
                   tensor(DType::F32, {1, 2, 3, 2},
                          {-0.858924, -0.691455, 1.0093, 0.797278, -0.231985, -0.550625, -0.416865,
                           -0.0723209, 0.490885, 0.131587, -0.781206, -0.89252})}});
  expect_as_onnx_runtime(
      {.op = "MultiHeadAttention",
       .inputs = {reals(0, {1, 2, 4}), reals(1, {1, 2, 3, 2}), reals(2, {1, 2, 3, 2}), fixed(reals(3, {12}))},
       .attributes = {int_attribute("num_heads", 2)},
       .outputs = {
           tensor(DType::F32, {1, 2, 4},
                  {0.468692, 0.173446, -0.711841, -0.608409, 0.549067, 0.255205, -0.711473, -0.603293})}});
}

TEST(OnnxRuntimeOps, AttentionOfGroups) {
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {1, 2, 16}), reals(1, {1, 2, 8}), reals(2, {1, 2, 8}), reals(3, {1, 1, 0, 8}),
                  reals(4, {1, 1, 0, 8}), tensor(DType::I32, {1}, {1}), tensor(DType::I32, {1}, {2})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("kv_num_heads", 1)},
       .outputs = {
           tensor(
               DType::F32, {1, 2, 16},
               {1.0093,     0.797278,   0.490885,   0.131587,    -0.231985, -0.550625, -0.781206, -0.89252,
                1.0093,     0.797278,   0.490885,   0.131587,    -0.231985, -0.550625, -0.781206, -0.89252,
                0.610473,   0.476201,   0.291012,   0.07997,     -0.128361, -0.305784, -0.428287, -0.479288,
                -0.0208328, -0.0320371, -0.0253708, -0.00173617, 0.035668,  0.0817792, 0.130356,  0.174825}),
           tensor(DType::F32, {1, 1, 2, 8},
                  {0.941471, 1.07991, 1.08572, 0.958118, 0.714374, 0.387478, 0.021673, -0.333531, -0.630058,
                   -0.827776, -0.899923, -0.836736, -0.646765, -0.355724, -0.0030023, 0.36366}),
           tensor(DType::F32, {1, 1, 2, 8},
                  {1.0093, 0.797278, 0.490885, 0.131587, -0.231985, -0.550625, -0.781206, -0.89252, -0.869501,
                   -0.715264, -0.450686, -0.111574, 0.256173, 0.602782, 0.881343, 1.05415})}});
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {1, 2, 16}),
                  reals(1, {1, 2, 8}),
                  reals(2, {1, 2, 8}),
                  {},
                  {},
                  tensor(DType::I32, {1}, {1}),
                  tensor(DType::I32, {1}, {2})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("kv_num_heads", 1)},
       .outputs = {
           tensor(
               DType::F32, {1, 2, 16},
               {1.0093,     0.797278,   0.490885,   0.131587,    -0.231985, -0.550625, -0.781206, -0.89252,
                1.0093,     0.797278,   0.490885,   0.131587,    -0.231985, -0.550625, -0.781206, -0.89252,
                0.610473,   0.476201,   0.291012,   0.07997,     -0.128361, -0.305784, -0.428287, -0.479288,
                -0.0208328, -0.0320371, -0.0253708, -0.00173617, 0.035668,  0.0817792, 0.130356,  0.174825}),
           tensor(DType::F32, {1, 1, 2, 8},
                  {0.941471, 1.07991, 1.08572, 0.958118, 0.714374, 0.387478, 0.021673, -0.333531, -0.630058,
                   -0.827776, -0.899923, -0.836736, -0.646765, -0.355724, -0.0030023, 0.36366}),
           tensor(DType::F32, {1, 1, 2, 8},
                  {1.0093, 0.797278, 0.490885, 0.131587, -0.231985, -0.550625, -0.781206, -0.89252, -0.869501,
                   -0.715264, -0.450686, -0.111574, 0.256173, 0.602782, 0.881343, 1.05415})}});
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {1, 1, 32}),
                  {},
                  {},
                  reals(3, {1, 1, 2, 8}),
                  reals(4, {1, 1, 2, 8}),
                  tensor(DType::I32, {1}, {2}),
                  tensor(DType::I32, {1}, {3})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("kv_num_heads", 1)},
       .outputs = {
           tensor(DType::F32, {1, 1, 16},
                  {0.646041, 0.594694, 0.476392, 0.307148, 0.109867, -0.0887497, -0.26182, -0.385919,
                   -0.481345, -0.649121, -0.715506, -0.671517, -0.523106, -0.290361, -0.00478253, 0.294978}),
           tensor(DType::F32, {1, 1, 3, 8},
                  {0.24112,   -0.126427, -0.463327, -0.723984, -0.873119, -0.890547, -0.773908, -0.538991,
                   -0.217589, 0.146798,  0.50485,   0.808108,  1.01553,   1.09903,   1.04733,   0.867401,
                   -0.255254, 0.106815,  0.467961,  0.779305,  0.998708,  1.09648,   1.05937,   0.892427}),
           tensor(
               DType::F32, {1, 1, 3, 8},
               {-0.656802, -0.841955, -0.899619,  -0.821989, -0.619572, -0.319764, 0.0368567, 0.402024,
                0.726313,  0.965834,  1.08817,    1.07676,   0.933149,  0.676777,  0.342341,  -0.024895,
                0.618228,  0.273889,  -0.0939844, -0.435603, -0.704731, -0.864942, -0.894553, -0.789555})}});
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {2, 1, 16}), reals(1, {2, 1, 8}), reals(2, {2, 1, 8}), reals(3, {2, 1, 3, 8}),
                  reals(4, {2, 1, 3, 8}), tensor(DType::I32, {2}, {3, 1}), tensor(DType::I32, {1}, {4})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("kv_num_heads", 1)},
       .outputs = {
           tensor(DType::F32, {2, 1, 16},
                  {0.754927,  0.813585,  0.775663,  0.646293,  0.442985,  0.193255,  -0.0690959, -0.308561,
                   -0.358315, -0.574243, -0.698915, -0.715458, -0.621633, -0.430137, -0.166891,  0.132479,
                   0.285123,  0.591917,  0.832133,  0.973258,  0.996192,  0.89783,   0.691486,   0.405087,
                   -0.633395, -0.447962, -0.188365, 0.11026,   0.407497,  0.663116,  0.84252,    0.921427}),
           tensor(DType::F32, {2, 1, 4, 8},
                  {0.24112,   -0.126427, -0.463327, -0.723984, -0.873119, -0.890547, -0.773908,  -0.538991,
                   -0.217589, 0.146798,  0.50485,   0.808108,  1.01553,   1.09903,   1.04733,    0.867401,
                   0.583613,  0.23437,   -0.133059, -0.468945, -0.727826, -0.874666, -0.889589,  -0.770575,
                   0.941471,  1.07991,   1.08572,   0.958118,  0.714374,  0.387478,  0.021673,   -0.333531,
                   -0.533734, -0.211119, 0.153604,  0.511072,  0.812903,  1.01825,   1.09931,    1.04512,
                   -0.630058, -0.827776, -0.899923, -0.836736, -0.646765, -0.355724, -0.0030023, 0.36366,
                   0,         0,         0,         0,         0,         0,         0,          0,
                   0,         0,         0,         0,         0,         0,         0,          0}),
           tensor(DType::F32, {2, 1, 4, 8},
                  {-0.656802, -0.841955, -0.899619, -0.821989, -0.619572, -0.319764, 0.0368567, 0.402024,
                   0.726313,  0.965834,  1.08817,   1.07676,   0.933149,  0.676777,  0.342341,  -0.024895,
                   -0.375227, -0.661239, -0.844221, -0.899408, -0.819329, -0.614823, -0.313569, 0.0436592,
                   1.0093,    0.797278,  0.490885,  0.131587,  -0.231985, -0.550625, -0.781206, -0.89252,
                   0.408513,  0.731611,  0.969223,  1.08919,   1.07528,   0.929361,  0.671197,  0.335724,
                   -0.869501, -0.715264, -0.450686, -0.111574, 0.256173,  0.602782,  0.881343,  1.05415,
                   0,         0,         0,         0,         0,         0,         0,         0,
                   0,         0,         0,         0,         0,         0,         0,         0})}});
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {1, 1, 16}), reals(1, {1, 1, 8}), reals(2, {1, 1, 8}), reals(3, {1, 1, 5, 8}),
                  reals(4, {1, 1, 5, 8}), tensor(DType::I32, {1}, {2}), tensor(DType::I32, {1}, {3})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("kv_num_heads", 1)},
       .outputs = {
           tensor(DType::F32, {1, 1, 16},
                  {0.790898, 0.860526, 0.827221, 0.69549, 0.483162, 0.218975, -0.0613148, -0.319771,
                   -0.345539, -0.508523, -0.589146, -0.576496, -0.472285, -0.290619, -0.0560839, 0.199576}),
           tensor(DType::F32, {1, 1, 5, 8},
                  {0.24112,   -0.126427, -0.463327, -0.723984, -0.873119, -0.890547, -0.773908, -0.538991,
                   -0.217589, 0.146798,  0.50485,   0.808108,  1.01553,   1.09903,   1.04733,   0.867401,
                   0.941471,  1.07991,   1.08572,   0.958118,  0.714374,  0.387478,  0.021673,  -0.333531,
                   0,         0,         0,         0,         0,         0,         0,         0,
                   0,         0,         0,         0,         0,         0,         0,         0}),
           tensor(DType::F32, {1, 1, 5, 8},
                  {-0.656802, -0.841955, -0.899619, -0.821989, -0.619572, -0.319764, 0.0368567, 0.402024,
                   0.726313,  0.965834,  1.08817,   1.07676,   0.933149,  0.676777,  0.342341,  -0.024895,
                   1.0093,    0.797278,  0.490885,  0.131587,  -0.231985, -0.550625, -0.781206, -0.89252,
                   0,         0,         0,         0,         0,         0,         0,         0,
                   0,         0,         0,         0,         0,         0,         0,         0})}});
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {1, 3, 16}), reals(1, {1, 3, 8}), reals(2, {1, 3, 8}), reals(3, {1, 1, 0, 8}),
                  reals(4, {1, 1, 0, 8}), tensor(DType::I32, {1}, {2}), tensor(DType::I32, {1}, {3})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("kv_num_heads", 1),
                      int_attribute("local_window_size", 2)},
       .outputs = {
           tensor(DType::F32, {1, 3, 16},
                  {1.0093,    0.797278,  0.490885,  0.131587,   -0.231985,  -0.550625,  -0.781206,
                   -0.89252,  1.0093,    0.797278,  0.490885,   0.131587,   -0.231985,  -0.550625,
                   -0.781206, -0.89252,  0.610473,  0.476201,   0.291012,   0.07997,    -0.128361,
                   -0.305784, -0.428287, -0.479288, -0.0208328, -0.0320371, -0.0253708, -0.00173617,
                   0.035668,  0.0817792, 0.130356,  0.174825,   0.496772,   0.480431,   0.4126,
                   0.302461,  0.16492,   0.0185914, -0.116718,  -0.222696,  0.305722,   0.313233,
                   0.291884,  0.244565,  0.17768,   0.100281,   0.0228436,  -0.0441507}),
           tensor(DType::F32, {1, 1, 3, 8},
                  {0.941471,  1.07991,   1.08572,   0.958118,  0.714374,  0.387478,  0.021673,   -0.333531,
                   -0.630058, -0.827776, -0.899923, -0.836736, -0.646765, -0.355724, -0.0030023, 0.36366,
                   0.694637,  0.945133,  1.08124,   1.08455,   0.954599,  0.708983,  0.380944,   0.0148811}),
           tensor(
               DType::F32, {1, 1, 3, 8},
               {1.0093,    0.797278,  0.490885,  0.131587,  -0.231985, -0.550625, -0.781206, -0.89252,
                -0.869501, -0.715264, -0.450686, -0.111574, 0.256173,  0.602782,  0.881343,  1.05415,
                1.09782,   1.00644,   0.792377,  0.484603,  0.124775,  -0.238406, -0.555785, -0.784407})}});
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {1, 2, 16}), reals(1, {1, 2, 8}), reals(2, {1, 2, 8}), reals(3, {1, 1, 0, 8}),
                  reals(4, {1, 1, 0, 8}), tensor(DType::I32, {1}, {1}), tensor(DType::I32, {1}, {2})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("kv_num_heads", 1),
                      float_attribute("softcap", 2.0F), float_attribute("scale", 0.5F)},
       .outputs = {
           tensor(
               DType::F32, {1, 2, 16},
               {1.0093,     0.797278,   0.490885,   0.131587,    -0.231985, -0.550625, -0.781206, -0.89252,
                1.0093,     0.797278,   0.490885,   0.131587,    -0.231985, -0.550625, -0.781206, -0.89252,
                0.72646,    0.569577,   0.349139,   0.0949814,   -0.158497, -0.376989, -0.530923, -0.599464,
                -0.0578081, -0.0618044, -0.0439012, -0.00652166, 0.0452751, 0.104479,  0.163076,  0.213136}),
           tensor(DType::F32, {1, 1, 2, 8},
                  {0.941471, 1.07991, 1.08572, 0.958118, 0.714374, 0.387478, 0.021673, -0.333531, -0.630058,
                   -0.827776, -0.899923, -0.836736, -0.646765, -0.355724, -0.0030023, 0.36366}),
           tensor(DType::F32, {1, 1, 2, 8},
                  {1.0093, 0.797278, 0.490885, 0.131587, -0.231985, -0.550625, -0.781206, -0.89252, -0.869501,
                   -0.715264, -0.450686, -0.111574, 0.256173, 0.602782, 0.881343, 1.05415})}});
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {1, 2, 16}),
                  reals(1, {1, 2, 8}),
                  reals(2, {1, 2, 8}),
                  reals(3, {1, 1, 0, 8}),
                  reals(4, {1, 1, 0, 8}),
                  tensor(DType::I32, {1}, {1}),
                  tensor(DType::I32, {1}, {2}),
                  {},
                  {},
                  {},
                  reals(7, {1, 1, 2, 2})},
       .attributes = {int_attribute("num_heads", 2), int_attribute("kv_num_heads", 1)},
       .outputs = {
           tensor(DType::F32, {1, 2, 16},
                  {1.0093,    0.797278,  0.490885,  0.131587,    -0.231985,  -0.550625,  -0.781206,
                   -0.89252,  1.0093,    0.797278,  0.490885,    0.131587,   -0.231985,  -0.550625,
                   -0.781206, -0.89252,  0.618613,  0.482754,    0.295091,   0.0810235,  -0.130476,
                   -0.310781, -0.435489, -0.487722, -0.00867096, -0.0222461, -0.0192758, -0.000162137,
                   0.032508,  0.0743129, 0.119594,  0.162224}),
           tensor(DType::F32, {1, 1, 2, 8},
                  {0.941471, 1.07991, 1.08572, 0.958118, 0.714374, 0.387478, 0.021673, -0.333531, -0.630058,
                   -0.827776, -0.899923, -0.836736, -0.646765, -0.355724, -0.0030023, 0.36366}),
           tensor(DType::F32, {1, 1, 2, 8},
                  {1.0093, 0.797278, 0.490885, 0.131587, -0.231985, -0.550625, -0.781206, -0.89252, -0.869501,
                   -0.715264, -0.450686, -0.111574, 0.256173, 0.602782, 0.881343, 1.05415})}});
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {1, 1, 16}), reals(1, {1, 1, 16}), reals(2, {1, 1, 16}), reals(3, {1, 1, 1, 16}),
                  reals(4, {1, 1, 1, 16}), tensor(DType::I32, {1}, {1}), tensor(DType::I32, {1}, {2}),
                  fixed(reals(5, {8, 8})), fixed(reals(6, {8, 8}))},
       .attributes = {int_attribute("num_heads", 1), int_attribute("kv_num_heads", 1),
                      int_attribute("do_rotary", 1)},
       .outputs = {
           tensor(DType::F32, {1, 1, 16},
                  {0.500108, 0.2963, 0.0659227, -0.159842, -0.350438, -0.48007, -0.531192, -0.496885,
                   -0.381792, -0.201491, 0.0196149, 0.251601, 0.463069, 0.625397, 0.716615, 0.724377}),
           tensor(
               DType::F32, {1, 1, 2, 16},
               {0.24112,   -0.126427, -0.463327, -0.723984,  -0.873119, -0.890547, -0.773908,  -0.538991,
                -0.217589, 0.146798,  0.50485,   0.808108,   1.01553,   1.09903,   1.04733,    0.867401,
                1.37575,   1.22896,   0.673799,  0.00912573, -0.42425,  -0.420897, -0.0153396, 0.540432,
                -0.173389, -0.608338, -0.873098, -0.854718,  -0.590325, -0.243981, -0.0173804, -0.0415718}),
           tensor(DType::F32, {1, 1, 2, 16},
                  {-0.656802, -0.841955, -0.899619, -0.821989, -0.619572, -0.319764, 0.0368567, 0.402024,
                   0.726313,  0.965834,  1.08817,   1.07676,   0.933149,  0.676777,  0.342341,  -0.024895,
                   1.0093,    0.797278,  0.490885,  0.131587,  -0.231985, -0.550625, -0.781206, -0.89252,
                   -0.869501, -0.715264, -0.450686, -0.111574, 0.256173,  0.602782,  0.881343,  1.05415})}});
  expect_as_onnx_runtime(
      {.op = "GroupQueryAttention",
       .inputs = {reals(0, {1, 2, 16}), reals(1, {1, 2, 16}), reals(2, {1, 2, 16}), reals(3, {1, 1, 1, 16}),
                  reals(4, {1, 1, 1, 16}), tensor(DType::I32, {1}, {2}), tensor(DType::I32, {1}, {3}),
                  fixed(reals(5, {8, 8})), fixed(reals(6, {8, 8}))},
       .attributes = {int_attribute("num_heads", 1), int_attribute("kv_num_heads", 1),
                      int_attribute("rotary_interleaved", 1), int_attribute("do_rotary", 1)},
       .outputs = {
           tensor(DType::F32, {1, 2, 16},
                  {0.674354,  0.467735,  0.211346,  -0.0601143, -0.309903, -0.504214, -0.616747, -0.632272,
                   -0.548687, -0.377306, -0.141323, 0.127322,   0.392268,  0.617658,  0.772985,  0.837227,
                   0.698037,  0.571329,  0.38083,   0.152321,   -0.083269, -0.294054, -0.451506, -0.534315,
                   -0.531272, -0.442789, -0.280842, -0.0673498, 0.168792,  0.395623,  0.582443,  0.703967}),
           tensor(DType::F32, {1, 1, 3, 16},
                  {0.24112,   -0.126427, -0.463327, -0.723984, -0.873119, -0.890547, -0.773908, -0.538991,
                   -0.217589, 0.146798,  0.50485,   0.808108,  1.01553,   1.09903,   1.04733,   0.867401,
                   0.4383,    1.69797,   0.887104,  1.15873,   0.611599,  0.172932,  -0.157528, -0.160082,
                   -0.673914, 0.402113,  -0.490528, 1.02522,   0.06453,   0.77938,   0.275228,  -0.289535,
                   -0.148457, -1.19683,  -0.739112, -1.11633,  -0.793251, -0.302556, -0.164719, 0.202335,
                   0.555669,  -0.243805, 0.679061,  -1.12998,  0.170225,  -1.3305,   -0.321969, -0.357154}),
           tensor(DType::F32, {1, 1, 3, 16},
                  {-0.656802, -0.841955, -0.899619, -0.821989, -0.619572, -0.319764, 0.0368567, 0.402024,
                   0.726313,  0.965834,  1.08817,   1.07676,   0.933149,  0.676777,  0.342341,  -0.024895,
                   1.0093,    0.797278,  0.490885,  0.131587,  -0.231985, -0.550625, -0.781206, -0.89252,
                   -0.869501, -0.715264, -0.450686, -0.111574, 0.256173,  0.602782,  0.881343,  1.05415,
                   1.09782,   1.00644,   0.792377,  0.484603,  0.124775,  -0.238406, -0.555785, -0.784407,
                   -0.893329, -0.867808, -0.711299, -0.444984, -0.104909, 0.2629,    0.608661,  0.885578})}});
}

TEST(OnnxRuntimeOps, Rotations) {
  expect_as_onnx_runtime({.op = "RotaryEmbedding",
                          .inputs = {reals(0, {1, 2, 8}), tensor(DType::I64, {1, 2}, {3, 1}),
                                     fixed(reals(1, {4, 2})), fixed(reals(2, {4, 2}))},
                          .outputs = {tensor(DType::F32, {1, 2, 8},
                                             {0.607046, 0.734718, -0.0613395, -0.744097, 0.724153, 0.203004,
                                              -0.836677, -1.15535, 0.515649, 0.00856035, -0.328941, -0.682808,
                                              -0.548019, -0.78284, -1.28429, -0.663201})}});
  expect_as_onnx_runtime({.op = "RotaryEmbedding",
                          .inputs = {reals(0, {1, 2, 8}), tensor(DType::I64, {1}, {1}),
                                     fixed(reals(1, {4, 2})), fixed(reals(2, {4, 2}))},
                          .attributes = {int_attribute("interleaved", 1)},
                          .outputs = {tensor(DType::F32, {1, 2, 8},
                                             {-0.118028, 0.550273, 0.610838, 1.05588, 0.668855, 1.6902,
                                              0.776899, 0.715885, 0.1802, -0.127455, -0.552357, -0.0348144,
                                              -0.824281, -0.439303, -0.620571, 0.215884})}});
  expect_as_onnx_runtime({.op = "RotaryEmbedding",
                          .inputs = {reals(0, {1, 2, 2, 4}), tensor(DType::I64, {1}, {1}),
                                     fixed(reals(1, {4, 2})), fixed(reals(2, {4, 2}))},
                          .outputs = {tensor(DType::F32, {1, 2, 2, 4},
                                             {-0.271514, 0.311261, 0.889748, 1.01474, 0.990859, 0.754835,
                                              0.386255, -0.342561, 0.515649, 0.00856035, -0.328941, -0.682808,
                                              -0.800481, -0.660324, -0.366013, 0.272374})}});
  expect_as_onnx_runtime(
      {.op = "RotaryEmbedding",
       .inputs = {reals(0, {1, 2, 12}), tensor(DType::I64, {1}, {1}), fixed(reals(1, {4, 2})),
                  fixed(reals(2, {4, 2}))},
       .attributes = {int_attribute("num_heads", 2), int_attribute("rotary_embedding_dim", 4)},
       .outputs = {tensor(
           DType::F32, {1, 2, 12},
           {-0.271514, 0.311261,   0.889748,  1.01474,   1.09588,   1.06128,     0.835678,  0.609395,
            0.744759,  -0.0015222, -0.429836, -0.700667, -0.800481, -0.660324,   -0.366013, 0.272374,
            -0.255254, 0.106815,   0.565984,  0.90571,   0.604891,  -0.00424451, 1.05937,   0.892427})}});
}

TEST(OnnxRuntimeOps, RecurrenceByQuantisedWeights) {
  expect_as_onnx_runtime(
      {.op = "DynamicQuantizeLSTM",
       .inputs = {reals(0, {3, 1, 2}),
                  fixed(signed_bytes(1, {1, 2, 8})),
                  fixed(signed_bytes(2, {1, 2, 8})),
                  {},
                  {},
                  {},
                  {},
                  {},
                  fixed(tensor(DType::F32, {1}, {0.01})),
                  fixed(tensor(DType::I8, {1}, {3})),
                  fixed(tensor(DType::F32, {1, 8}, {0.01, 0.02, 0.01, 0.03, 0.01, 0.02, 0.01, 0.02})),
                  fixed(tensor(DType::I8, {1, 8}, {0, 0, 0, 0, 0, 0, 0, 0}))},
       .attributes = {int_attribute("hidden_size", 2), string_attribute("direction", "forward")},
       .outputs = {
           tensor(DType::F32, {3, 1, 1, 2}, {0.0794533, -0.0074799, 0.105503, 0.0555082, 0.103192, 0.140053}),
           tensor(DType::F32, {1, 1, 2}, {0.103192, 0.140053}),
           tensor(DType::F32, {1, 1, 2}, {0.280001, 0.280014})}});
  expect_as_onnx_runtime(
      {.op = "DynamicQuantizeLSTM",
       .inputs = {reals(0, {3, 1, 2}),
                  fixed(signed_bytes(1, {1, 2, 8})),
                  fixed(signed_bytes(2, {1, 2, 8})),
                  fixed(reals(3, {1, 16})),
                  {},
                  reals(4, {1, 1, 2}),
                  reals(5, {1, 1, 2}),
                  {},
                  fixed(tensor(DType::F32, {1}, {0.01})),
                  fixed(tensor(DType::I8, {1}, {0})),
                  fixed(tensor(DType::F32, {1}, {0.01})),
                  fixed(tensor(DType::I8, {1}, {0}))},
       .attributes = {int_attribute("hidden_size", 2), string_attribute("direction", "reverse")},
       .outputs = {tensor(DType::F32, {3, 1, 1, 2},
                          {0.177134, 0.0987548, 0.0192399, 0.102952, -0.122381, 0.00654372}),
                   tensor(DType::F32, {1, 1, 2}, {0.177134, 0.0987548}),
                   tensor(DType::F32, {1, 1, 2}, {0.3386, 0.230561})}});
  expect_as_onnx_runtime(
      {.op = "DynamicQuantizeLSTM",
       .inputs = {reals(0, {3, 1, 2}),
                  fixed(signed_bytes(1, {2, 2, 8})),
                  fixed(signed_bytes(2, {2, 2, 8})),
                  fixed(reals(3, {2, 16})),
                  {},
                  {},
                  {},
                  {},
                  fixed(tensor(DType::F32, {2}, {0.01, 0.01})),
                  fixed(tensor(DType::I8, {2}, {0, 4})),
                  fixed(tensor(DType::F32, {2}, {0.01, 0.02})),
                  fixed(tensor(DType::I8, {2}, {-3, 0}))},
       .attributes = {int_attribute("hidden_size", 2), string_attribute("direction", "bidirectional")},
       .outputs = {tensor(DType::F32, {3, 2, 1, 2},
                          {0.140532, 0.0506398, 0.0140488, -0.0416777, 0.177102, 0.140394, -0.0240598,
                           -0.0957952, 0.178063, 0.239409, -0.034365, 0.0294201}),
                   tensor(DType::F32, {2, 1, 2}, {0.178063, 0.239409, 0.0140488, -0.0416777}),
                   tensor(DType::F32, {2, 1, 2}, {0.462797, 0.496455, 0.0310585, -0.0614017})}});
}

TEST(OnnxRuntimeOps, SayWhatTheyDoNotTake) {
  const Tensor image = reals(0, {1, 1, 2, 2}), rows = reals(0, {1, 2, 4});
  refuse_op({.op = "FusedConv",
             .inputs = {image, image},
             .attributes = {string_attribute("activation", "Mish")},
             .outputs = {image}},
            "FusedConv: activation is \"Mish\", but must be one of , Relu, Sigmoid, Tanh, LeakyRelu, Clip, "
            "HardSigmoid");
  refuse_op(
      {.op = "FusedConv",
       .inputs = {image, image},
       .attributes = {string_attribute("activation", "Clip"), floats_attribute("activation_params", {0})},
       .outputs = {image}},
      "FusedConv: 1 numbers are too few for the activation Clip");
  refuse_op({.op = "QLinearConcat",
             .inputs = {number(1), zero(0), bytes(0, {2}), number(1)},
             .attributes = {int_attribute("axis", 0)},
             .outputs = {image}},
            "QLinearConcat: 4 inputs are not two and three for each part");
  refuse_op<UnsupportedError>({.op = "Attention",
                               .inputs = {rows, reals(1, {4, 12}), {}, tensor(DType::I32, {3}, {1, 1, 1})},
                               .attributes = {int_attribute("num_heads", 2)},
                               .outputs = {rows}},
                              "Attention: a mask i32[3] for keys f32[1,2,2,2]");
  refuse_op<UnsupportedError>({.op = "MultiHeadAttention",
                               .inputs = {reals(0, {1, 2, 2, 3, 2})},
                               .attributes = {int_attribute("num_heads", 2)},
                               .outputs = {rows}},
                              "MultiHeadAttention: queries, keys and values in one tensor");
  refuse_op<UnsupportedError>(
      {.op = "SkipLayerNormalization", .inputs = {rows, rows, reals(1, {4})}, .outputs = {rows, rows}},
      "SkipLayerNormalization: its output 1 (\"y1\")");
  const Messages attributes = {int_attribute("K", 16), int_attribute("N", 2),
                               int_attribute("block_size", 16)};
  const auto refuse_product = [&]<class Error>(Error, const Input& weights, const Input& groups,
                                               const std::string& message) {
    refuse_op<Error>({.op = "MatMulNBits",
                      .inputs = {reals(0, {1, 16}), weights, reals(1, {2}), {}, groups},
                      .attributes = attributes,
                      .outputs = {rows}},
                     "MatMulNBits: " + message);
  };
  refuse_product(UnsupportedError(""), bytes(0, {2, 1, 8}), {}, "input 1 must be a constant");
  refuse_product(UserError(""), fixed(bytes(0, {2, 1, 7})), {},
                 "input 1 is u8[2,1,7], but u4[2,16] take 16 bytes");
  refuse_product(UnsupportedError(""), fixed(bytes(0, {2, 1, 8})),
                 tensor(DType::I32, {16}, std::vector<double>(16, 0)), "its input g_idx");
}

TEST(OnnxRuntimeOps, RefuseRanksAndHeadsThatMakeNoSense) {
  const auto refuse_ranks = [](const std::string& op, const std::vector<Input>& inputs,
                               const Messages& attributes, const std::string& message) {
    refuse_op({.op = op, .inputs = inputs, .attributes = attributes, .outputs = {number(0)}}, message);
  };
  const Messages heads = {int_attribute("num_heads", 1)};
  refuse_ranks("NhwcMaxPool", {zero(1)}, {ints_attribute("kernel_shape", {1})},
               "u8[] has rank 0, but must have a batch, channels and what they lie along");
  refuse_ranks("QLinearGlobalAveragePool", {bytes(0, {3}), number(1), zero(0), number(1), zero(0)},
               {int_attribute("channels_last", 1)},
               "f32[3] has rank 1, but must have a batch, channels and what they lie along");
  refuse_ranks("Attention", {reals(0, {2, 2}), reals(1, {2, 6}), reals(2, {6})}, heads,
               "Attention: f32[2,6] has rank 2, but must have 3");
  refuse_ranks("MultiHeadAttention",
               {reals(0, {1, 2, 2}), reals(1, {1, 1, 2, 2}), reals(2, {1, 2, 2}), reals(3, {6})}, heads,
               "MultiHeadAttention: f32[1,2,2] has rank 3, but must have 4");
  refuse_ranks("RotaryEmbedding",
               {reals(0, {2, 2, 2}), tensor(DType::I64, {}, {0}), reals(1, {4, 1}), reals(2, {4, 1})}, {},
               "RotaryEmbedding: i64[] has rank 0, but must have 2");
  for (const int64_t count : {0, -1})
    refuse_ranks(
        "GroupQueryAttention",
        {reals(0, {2, 2, 2}), {}, {}, {}, {}, tensor(DType::I32, {2}, {1, 1}), tensor(DType::I32, {1}, {2})},
        {int_attribute("num_heads", count), int_attribute("kv_num_heads", 0)},
        fmt::format("GroupQueryAttention: num_heads is {}, and kv_num_heads 0", count));
  refuse_op<UnsupportedError>(
      {.op = "MultiHeadAttention",
       .inputs = {reals(0, {1, 2, 2}), reals(1, {1, 4, 2}), reals(2, {1, 4, 2})},
       .attributes = {int_attribute("num_heads", 1), int_attribute("unidirectional", 1)},
       .outputs = {number(0)}},
      "MultiHeadAttention: 2 queries of 4 keys, unidirectional");
}

}  // namespace
}  // namespace tenon::onnx
