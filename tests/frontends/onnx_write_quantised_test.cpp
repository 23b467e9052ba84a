// Quantised models, whose weights stay small.
#include "frontends/onnx_written.h"
#include "tensor/wide.h"

namespace tenon::onnx {
namespace {

TEST(WriteOnnx, WritesProductsOfBytesAsOneNode) {
  EXPECT_EQ(written(R"(
    graph(%x: u8[n,3,8,8], %w: i8[4,3,1,1], %xz: u8[], %wz: i8[4]) {
      %0 = cast(%x, to=i32)
      %1 = cast(%xz, to=i32)
      %2 = sub(%0, %1)
      %3 = cast(%w, to=i32)
      %4 = cast(%wz, to=i32)
      %5 = unsqueeze(%4, axes=[1,2,3])
      %6 = sub(%3, %5)
      %y = conv(%2, %6, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=1)
      return %y
    })")
                .nodes,
            "ConvInteger[group, strides, dilations, pads](x, w, xz, wz) -> y\n");
  EXPECT_EQ(written(R"(
    graph(%a: u8[2,3], %b: u8[3,4]) {
      %0 = cast(%a, to=i32)
      %1 = cast(%b, to=i32)
      %y = matmul(%0, %1)
      return %y
    })")
                .nodes,
            "MatMulInteger(a, b) -> y\n");
}

// As folding leaves them: widened weights, and zero points that are added.
std::string product_of_bytes(std::string_view x, std::string_view weights) {
  return fmt::format(R"(
    graph(%x: {}[n,2]) {{
      %0 = cast(%x, to=i32)
      %1 = constant(value=i32[] {{-7}})
      %2 = add(%0, %1)
      %w = constant(value=i32[2,2] {{{}}})
      %y = matmul(%2, %w)
      return %y
    }})",
                     x, weights);
}

void expect_same_product(const std::string& text, const std::string& nodes) {
  const auto graph = parse_graph(text);
  EXPECT_EQ(written(*graph).nodes, nodes);
  const Tensor x = narrow<int64_t>(graph->input(0).dtype(), {2, 2}, std::vector<int64_t>{0, 255, 128, 7});
  expect_same_results(*graph, {x});
}

TEST(WriteOnnx, NarrowsConstantsOfIntegerProducts) {
  expect_same_product(product_of_bytes("u8", "1, 2, -128, 127"),
                      "MatMulInteger(x, constant, constant_1) -> y\n");
  // With a zero point, and with one for each column.
  const std::string shifted = "MatMulInteger(x, constant, constant_1, constant_2) -> y\n";
  expect_same_product(product_of_bytes("i8", "1, 2, -152, 103"), shifted);
  expect_same_product(product_of_bytes("u8", "0, 2, -255, 255"), shifted);
}

TEST(WriteOnnx, WritesProductsOfLargerIntegersAsTheyAre) {
  expect_same_product(product_of_bytes("u8", "1, 2, -255, 103"),
                      "Cast[to](x) -> cast\nAdd(cast, constant) -> add\nMatMul(add, w) -> y\n");
}

TEST(WriteOnnx, NarrowsTheWeightsOfIntegerConvs) {
  const auto graph = parse_graph(R"(
    graph(%x: u8[n,1,2]) {
      %0 = cast(%x, to=i32)
      %xz = constant(value=i32[1] {7})
      %1 = sub(%0, %xz)
      %w = parameter(name="w", value=u8[2,1,2] {0, 255, 128, 7})
      %2 = cast(%w, to=i32)
      %wz = constant(value=i32[2,1,1] {128, 0})
      %3 = sub(%2, %wz)
      %y = conv(%1, %3, strides=[1], dilations=[1], pads=[1,0], groups=1)
      return %y
    })");
  EXPECT_EQ(written(*graph).nodes,
            "ConvInteger[group, strides, dilations, pads](x, w, constant, constant_1) -> y\n");
  const Tensor x = narrow<int64_t>(DType::U8, {1, 1, 2}, std::vector<int64_t>{9, 200});
  expect_same_results(*graph, {x});
}

// ONNX Runtime has no Gemm of integers.
TEST(WriteOnnx, WritesNoGemmOfIntegers) {
  EXPECT_EQ(written(R"(
    graph(%x: i32[n,4], %w: i32[3,4], %b: i32[3]) {
      %0 = matmul(%x, %w, transpose_b=true)
      %y = add(%0, %b)
      return %y
    })")
                .nodes,
            "Transpose[perm](w) -> transpose\nMatMul(x, transpose) -> matmul\nAdd(matmul, b) -> y\n");
}

TEST(WriteOnnx, QuantisesDynamicallyInOneNode) {
  const std::string text = "graph(%x: f32[n,2]) { %q, %s, %z = dynamic_quantize(%x) return %q, %s, %z }";
  EXPECT_EQ(written(text).nodes, "DynamicQuantizeLinear(x) -> q, s, z\n");
  expect_same_after_reading(text);
  EXPECT_NE(written("graph(%x: f16[n,2]) { %q, %s, %z = dynamic_quantize(%x) return %q }")
                .nodes.find("QuantizeLinear[axis](x, "),
            std::string::npos);  // which is for f32 only
}

TEST(WriteOnnx, KeepsQuantisedWeightsSmall) {
  const std::string text = R"(
    graph(%x: f32[n,2]) {
      %w = constant(value=i8[2,2] {1, 2, 3, 4})
      %s = constant(value=f32[1,2] {0.5, 2})
      %f = dequantize(%w, %s, to=f32, axis=0, block_size=2)
      %y = matmul(%x, %f)
      return %y
    })";
  EXPECT_EQ(written(text).nodes, "DequantizeLinear[axis, block_size](w, s) -> f\nMatMul(x, f) -> y\n");
  EXPECT_EQ(written(text, {.opset = 20}).nodes, "MatMul(x, f) -> y\n");  // which has no blocks
}

TEST(WriteOnnx, GivesAConvItsDequantisedBias) {
  const auto nodes_with = [](std::string_view scale) {
    return written(fmt::format(R"(
      graph(%x: f32[n,3,8,8], %w: f32[4,3,1,1]) {{
        %i = constant(value=i32[4,1,1] {{1, 2, 3, 4}})
        %s = constant(value=f32{})
        %b = dequantize(%i, %s, to=f32, axis=0)
        %c = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=1)
        %y = add(%c, %b)
        return %y
      }})",
                               scale))
        .nodes;
  };
  EXPECT_EQ(nodes_with("[] {0.5}"),
            "DequantizeLinear[axis](i, s) -> dequantize\n"
            "Conv[group, strides, dilations, pads](x, w, dequantize) -> y\n");
  EXPECT_EQ(nodes_with("[4] {0.5, 1, 2, 4}"),
            "DequantizeLinear[axis](i, s) -> b\nConv[group, strides, dilations, pads](x, w) -> c\n"
            "Add(c, b) -> y\n");
}

}  // namespace
}  // namespace tenon::onnx
