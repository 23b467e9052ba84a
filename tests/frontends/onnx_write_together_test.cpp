// Several nodes of ours in one of ONNX's, and what its engines want in another form.
#include "frontends/onnx_written.h"

namespace tenon::onnx {
namespace {

TEST(WriteOnnx, AddsAConstantAlongTheChannelsAsTheBiasOfAConv) {
  const std::string text = R"(
    graph(%x: f32[n,3,8,8], %w: f32[4,3,1,1]) {
      %b = constant(value=f32[4,1,1] {1, 2, 3, 4})
      %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=1)
      %y = add(%0, %b)
      return %y
    })";
  EXPECT_EQ(written(text).nodes, "Conv[group, strides, dilations, pads](x, w, b) -> y\n");
}

TEST(WriteOnnx, WritesTheBiasOfSeveralConvsOnceAndAlsoAsItIs) {
  const std::string text = R"(
    graph(%x: f32[1,1,1,2], %w: f32[2,1,1,1]) {
      %b = constant(value=f32[2,1,1] {1, 2})
      %0 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=1)
      %1 = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=1)
      %y = add(%0, %b)
      %z = add(%b, %1)
      %n = mul(%x, %b)
      return %y, %z, %n
    })";
  const std::string conv = "Conv[group, strides, dilations, pads](x, w, b)";
  EXPECT_EQ(written(text).nodes, conv + " -> y\n" + conv + " -> z\nMul(x, b_1) -> n\n");
  const auto graph = parse_graph(text);
  expect_same_results(*graph, {f32({1, 1, 1, 2}, {3, 4}), f32({2, 1, 1, 1}, {5, 6})});
}

TEST(WriteOnnx, LeavesASharedConvItsOwnNode) {
  const std::string text = R"(
    graph(%x: f32[n,3,8,8], %w: f32[4,3,1,1]) {
      %b = constant(value=f32[4,1,1] {1, 2, 3, 4})
      %c = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=1)
      %y = add(%c, %b)
      return %y, %c
    })";
  EXPECT_EQ(written(text).nodes, "Conv[group, strides, dilations, pads](x, w) -> c\nAdd(c, b) -> y\n");
}

TEST(WriteOnnx, AddsWhatVariesOverTheImageWithANodeOfItsOwn) {
  const std::string text = R"(
    graph(%x: f32[n,3,8,8], %w: f32[4,3,1,1], %b: f32[4,8,8]) {
      %c = conv(%x, %w, strides=[1,1], dilations=[1,1], pads=[0,0,0,0], groups=1)
      %y = add(%c, %b)
      return %y
    })";
  EXPECT_EQ(written(text).nodes, "Conv[group, strides, dilations, pads](x, w) -> c\nAdd(c, b) -> y\n");
}

TEST(WriteOnnx, WritesALinearLayerOfAMatrixAsGemm) {
  EXPECT_EQ(
      written("graph(%x: f32[n,4], %w: f32[3,4], %b: f32[3]) { %y = linear(%x, %w, %b) return %y }").nodes,
      "Gemm[transB](x, w, b) -> y\n");
  EXPECT_EQ(written(R"(
    graph(%x: f32[n,4], %w: f32[4,3], %b: f32[3]) {
      %0 = matmul(%x, %w)
      %1 = constant(value=f32[] {0.5})
      %2 = mul(%0, %1)
      %y = add(%2, %b)
      return %y
    })")
                .nodes,
            "Gemm[alpha](x, w, b) -> y\n");
}

TEST(WriteOnnx, DoesNotBroadcastTheProductOfAGemm) {
  EXPECT_EQ(written(R"(
    graph(%x: f32[1,4], %w: f32[4,3], %b: f32[5,3]) {
      %p = matmul(%x, %w)
      %y = add(%p, %b)
      return %y
    })")
                .nodes,
            "MatMul(x, w) -> p\nAdd(p, b) -> y\n");
}

TEST(WriteOnnx, TransposesTheWeightsOfALinearLayerOfStacksWhenWriting) {
  const std::unique_ptr<Graph> graph = parse_graph(R"(
    graph(%x: f32[2,n,2]) {
      %w = parameter(name="w", value=f32[3,2] {1, 2, 3, 4, 5, 6})
      %y = linear(%x, %w)
      return %y
    })");
  EXPECT_EQ(written(*graph).nodes, "MatMul(x, w) -> y\n");
  const std::unique_ptr<Graph> back = read_back(*graph);
  EXPECT_EQ(back->outputs().front().node()->in("b").known_tensor() != nullptr ||
                back->outputs().front().node()->in("b").node()->is("parameter"),
            true);
}

// ONNX Runtime wants angles for each of the batch, and masks for each query.
TEST(WriteOnnx, RepeatsAnglesAndMasksOnceForAll) {
  EXPECT_EQ(written(R"(
    graph(%x: f32[2,4,3,8], %y: f32[2,4,3,8], %cos: f32[1,3,4], %sin: f32[1,3,4]) {
      %0 = rotary(%x, %cos, %sin)
      %1 = rotary(%y, %cos, %sin)
      return %0, %1
    })")
                .nodes,
            "Expand(cos, concat) -> broadcast\nExpand(sin, concat_1) -> broadcast_1\n"
            "RotaryEmbedding[interleaved](x, broadcast, broadcast_1) -> output\n"
            "RotaryEmbedding[interleaved](y, broadcast, broadcast_1) -> output_1\n");
  EXPECT_EQ(written(R"(
    graph(%q: f32[2,4,3,8], %k: f32[2,4,5,8], %v: f32[2,4,5,8], %m: f32[2,1,1,5]) {
      %y = attention(%q, %k, %v, %m, scale=1)
      return %y
    })")
                .nodes,
            "Expand(m, concat) -> broadcast\nAttention[scale, softcap, softmax_precision](q, k, v, "
            "broadcast) -> y\n");
}

TEST(WriteOnnx, RepeatsAnglesAndMasksAsOftenAsRunningTells) {
  const std::string rotary = R"(
    graph(%x: f32[n,4,3,8], %cos: f32[1,3,4], %sin: f32[1,3,4]) {
      %y = rotary(%x, %cos, %sin)
      return %y
    })";
  EXPECT_NE(written(rotary).nodes.find("RotaryEmbedding[interleaved](x, broadcast, broadcast_1) -> y\n"),
            std::string::npos);
  const std::string attention = R"(
    graph(%q: f32[2,4,n,8], %k: f32[2,4,5,8], %v: f32[2,4,5,8], %m: f32[2,1,1,5]) {
      %0 = attention(%q, %k, %v, %m, scale=1)
      %y = attention(%0, %k, %v, %m, scale=1)
      return %y
    })";
  const std::string nodes = written(attention).nodes;
  EXPECT_NE(nodes.find("(q, k, v, broadcast) -> attention\n"), std::string::npos) << nodes;
  EXPECT_NE(nodes.find("(attention, k, v, broadcast) -> y\n"), std::string::npos) << nodes;
  EXPECT_EQ(written(attention, {.opset = 20}).nodes.find("Expand"), std::string::npos);
  EXPECT_EQ(read_back(*parse_graph(rotary))->outputs().front().node()->in("cos").dim(0), Dim(1));
  EXPECT_EQ(read_back(*parse_graph(attention))->outputs().front().node()->in("mask").dim(2), Dim(1));
}

TEST(WriteOnnx, RepeatsAMaskForEachLengthThatNobodyKnows) {
  const std::string nodes = written(R"(
    graph(%q: f32[2,4,?,8], %p: f32[2,4,?,8], %k: f32[2,4,5,8], %m: f32[2,1,1,5]) {
      %0 = attention(%q, %k, %k, %m, scale=1)
      %1 = attention(%p, %k, %k, %m, scale=1)
      return %0, %1
    })")
                                .nodes;
  EXPECT_NE(nodes.find("(q, k, k, broadcast) -> "), std::string::npos) << nodes;
  EXPECT_NE(nodes.find("(p, k, k, broadcast_1) -> "), std::string::npos) << nodes;
}

TEST(WriteOnnx, TransposesASharedWeightOnce) {
  EXPECT_EQ(written(R"(
    graph(%x: f32[2,n,2]) {
      %w = parameter(name="w", value=f32[2,2] {1, 2, 3, 4})
      %0 = linear(%x, %w)
      %y = linear(%0, %w)
      return %y
    })")
                .nodes,
            "MatMul(x, w) -> matmul\nMatMul(matmul, w) -> y\n");
}

TEST(WriteOnnx, DecomposesNothingThatTheOpsetHas) {
  EXPECT_EQ(written("graph(%x: f32[2,4], %s: f32[4]) { %y = rms_norm(%x, %s) return %y }").nodes,
            "RMSNormalization[axis, epsilon](x, s) -> y\n");
}

TEST(WriteOnnx, GivesANormTheScaleThatOnnxWants) {
  EXPECT_EQ(written("graph(%x: f32[n,4]) { %y = rms_norm(%x) return %y }").nodes,
            "RMSNormalization[axis, epsilon](x, constant) -> y\n");
  EXPECT_EQ(written("graph(%x: f32[n,4]) { %y = layer_norm(%x) return %y }").nodes,
            "LayerNormalization[axis, epsilon](x, constant) -> y\n");
}

TEST(WriteOnnx, WritesActivationsOfSeveralNodesAsOne) {
  EXPECT_EQ(written(R"(
    graph(%x: f32[n,3], %s: f32[3]) {
      %z = constant(value=f32[] {0})
      %0 = less(%x, %z)
      %1 = mul(%x, %s)
      %y = where(%0, %1, %x)
      return %y
    })")
                .nodes,
            "PRelu(x, s) -> y\n");
  EXPECT_EQ(written(R"(
    graph(%x: f32[n,3]) {
      %o = constant(value=f32[] {1})
      %0 = abs(%x)
      %1 = add(%0, %o)
      %y = div(%x, %1)
      return %y
    })")
                .nodes,
            "Softsign(x) -> y\n");
  EXPECT_EQ(written(R"(
    graph(%x: f32[n,3]) {
      %z = constant(value=f32[] {0})
      %a = constant(value=f32[] {0.5})
      %0 = greater(%x, %a)
      %y = where(%0, %x, %z)
      return %y
    })")
                .nodes,
            "ThresholdedRelu[alpha](x) -> y\n");
}

TEST(WriteOnnx, LeavesActivationsWhoseStepsAreUsedElsewhere) {
  EXPECT_EQ(written(R"(
    graph(%x: f32[n,3], %s: f32[3]) {
      %z = constant(value=f32[] {0})
      %0 = less(%x, %z)
      %1 = mul(%x, %s)
      %y = where(%0, %1, %x)
      return %y, %1
    })")
                .nodes,
            "Less(x, z) -> less\nMul(x, s) -> output\nWhere(less, output, x) -> y\n");
}

// The slope would stretch x, which PRelu does not.
TEST(WriteOnnx, LeavesSlopesThatAreLargerThanWhatTheySlope) {
  const Found found = written(R"(
    graph(%x: f32[1,3], %s: f32[2,3]) {
      %z = constant(value=f32[] {0})
      %0 = less(%x, %z)
      %1 = mul(%x, %s)
      %y = where(%0, %1, %x)
      return %y
    })");
  EXPECT_EQ(found.nodes.find("PRelu"), std::string::npos);
}

TEST(WriteOnnx, WritesReductionsOfSquaresAndMagnitudesAsOne) {
  const auto nodes = [](const std::string& formula) {
    return written("graph(%x: f32[n,3]) { " + formula + " return %y }").nodes;
  };
  EXPECT_EQ(nodes("%0 = mul(%x, %x) %y = reduce_sum(%0, axes=[1])"),
            "ReduceSumSquare[keepdims, axes](x) -> y\n");
  EXPECT_EQ(nodes("%0 = mul(%x, %x) %1 = reduce_sum(%0, axes=[1]) %y = sqrt(%1)"),
            "ReduceL2[keepdims, axes](x) -> y\n");
  EXPECT_EQ(nodes("%0 = abs(%x) %y = reduce_sum(%0, axes=[1])"), "ReduceL1[keepdims, axes](x) -> y\n");
  EXPECT_EQ(nodes("%0 = reduce_sum(%x, axes=[1]) %y = log(%0)"), "ReduceLogSum[keepdims, axes](x) -> y\n");
  // A product of different values, and a reduction of nothing.
  EXPECT_EQ(nodes("%0 = relu(%x) %1 = mul(%x, %0) %y = reduce_sum(%1, axes=[1])").find("Square"),
            std::string::npos);
  EXPECT_EQ(nodes("%0 = abs(%x) %y = reduce_sum(%0, axes=[])").find("ReduceL1"), std::string::npos);
}

// As the reader spells them: of ONNX's two orders of channels, and torch's pixel_shuffle, which is the
// second.
TEST(WriteOnnx, WritesBlocksOfPixelsAsOne) {
  const auto blocks = [](const std::string& from, const std::string& six, const std::string& permutation,
                         const std::string& to) {
    return written(fmt::format(R"(
      graph(%x: f32[{}]) {{
        %s = constant(value=i64[6] {{{}}})
        %r = constant(value=i64[4] {{{}}})
        %0 = reshape(%x, %s, allow_zero=false)
        %1 = transpose(%0, permutation=[{}])
        %y = reshape(%1, %r, allow_zero=false)
        return %y
      }})",
                               from, six, to, permutation))
        .nodes;
  };
  EXPECT_EQ(blocks("n,12,2,3", "0,2,2,3,2,3", "0,3,4,1,5,2", "0,3,4,6"),
            "DepthToSpace[blocksize, mode](x) -> y\n");
  EXPECT_EQ(blocks("n,12,2,3", "0,3,2,2,2,3", "0,1,4,2,5,3", "0,3,4,6"),
            "DepthToSpace[blocksize, mode](x) -> y\n");
  EXPECT_EQ(blocks("n,3,4,6", "0,3,2,2,3,2", "0,3,5,1,2,4", "0,12,2,3"), "SpaceToDepth[blocksize](x) -> y\n");
  // Blocks that are not square, pixels in another order, and an image that is cut up otherwise.
  for (const auto& [six, permutation, to] : {std::tuple("0,2,3,2,2,3", "0,3,4,1,5,2", "0,2,4,9"),
                                             {"0,2,2,3,2,3", "0,3,4,2,5,1", "0,3,4,6"},
                                             {"0,2,2,3,2,3", "0,3,4,1,5,2", "0,3,8,3"}})
    EXPECT_EQ(blocks("n,12,2,3", six, permutation, to).find("DepthToSpace"), std::string::npos);
}

TEST(WriteOnnx, WritesFramesAsAGather) {
  EXPECT_EQ(written(R"(
    graph(%x: f32[2,7]) {
      %three = constant(value=i64[] {3})
      %two = constant(value=i64[] {2})
      %y = frames(%x, %three, %two, axis=1)
      return %y
    })")
                .nodes.substr(0, 6),
            "Gather");
  const auto graph = parse_graph(R"(
    graph(%x: f32[n]) {
      %three = constant(value=i64[] {3})
      %two = constant(value=i64[] {2})
      %y = frames(%x, %three, %two, axis=0)
      return %y
    })");
  expect_same_results(*graph, {f32({7}, {1, 2, 3, 4, 5, 6, 7})});
  expect_same_results(*graph, {f32({2}, {1, 2})});
}

TEST(WriteOnnx, DecomposesWhatIsToBeAvoided) {
  const std::string text =
      "graph(%x: f32[1,4,2], %s: f32[4], %b: f32[4]) { %y = group_norm(%x, %s, %b, groups=2) return %y }";
  EXPECT_EQ(written(text).nodes, "GroupNormalization[num_groups, epsilon](x, s, b) -> y\n");
  const Found found = written(text, {.avoided = {"GroupNormalization"}});
  EXPECT_EQ(found.nodes.find("GroupNormalization"), std::string::npos);
  EXPECT_LT(found.opset, 21);
}

TEST(WriteOnnx, IsNotOlderThanWanted) {
  const std::string text = "graph(%x: f32[2]) { %y = relu(%x) return %y }";
  EXPECT_EQ(written(text, {.wanted_opset = 17}).opset, 17);
  EXPECT_EQ(written(text, {.wanted_opset = 9}).opset, 13);
  EXPECT_EQ(written(text, {.opset = 15, .wanted_opset = 17}).opset, 15);
}

}  // namespace
}  // namespace tenon::onnx
