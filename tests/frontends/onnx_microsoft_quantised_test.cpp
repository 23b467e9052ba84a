// Quantised ops of ONNX Runtime's own, beside its numbers.
#include "frontends/onnx_runtime_op.h"

namespace tenon::onnx {
namespace {

using namespace encode;

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

}  // namespace
}  // namespace tenon::onnx
