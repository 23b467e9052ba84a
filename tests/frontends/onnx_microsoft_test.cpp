// Ops of ONNX Runtime's own that are several in one, beside its numbers; and what is refused of any.
#include "frontends/onnx_runtime_op.h"

namespace tenon::onnx {
namespace {

using namespace encode;

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
