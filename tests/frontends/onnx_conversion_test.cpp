// What single nodes are read as where their inputs, outputs or attributes are unusual.
#include "frontends/onnx_run.h"

namespace tenon::onnx {
namespace {

using namespace encode;

const Bytes kUnranked = tensor_type(kFloat), kScalar = tensor_type(kFloat, {});

Bytes floats(const std::vector<Size>& sizes) { return tensor_type(kFloat, sizes); }

// --- ranks that are wrong or not known

TEST(OnnxRank, OfAttentionMatters) {
  const auto linear = [](const Bytes& q, const Bytes& decay) {
    return model_of({.op = "LinearAttention",
                     .types = {q, floats({1, 3, 8}), floats({1, 3, 8}), "", decay, floats({1, 3, 2})},
                     .attributes = {int_attribute("q_num_heads", 2), int_attribute("kv_num_heads", 2)},
                     .opset = 27});
  };
  refuse(linear(floats({1, 3, 8}), floats({3, 8})),
         R"(node "n": LinearAttention: f32[3,8] has rank 2, but must have 3)");
  refuse(linear(floats({8}), floats({1, 3, 8})),
         R"(node "n": LinearAttention: f32[8] has rank 1, but must have 3)");
  refuse<UnsupportedError>(
      linear(floats({1, 3, 8}), kUnranked),
      R"(node "n": LinearAttention: the rank of its input must be known when the model is read)");
  const Bytes x = floats({1, 2, 3, 8});
  refuse(model_of({.op = "Attention",
                   .types = {x, x, x, "", floats({1, 2}), floats({1, 2})},
                   .attributes = {int_attribute("is_causal", 1)},
                   .opset = 23}),
         R"(node "n": Attention: past_key is f32[1,2], but must have rank 4)");
}

TEST(OnnxRank, OfAMaskMayBeUnknown) {
  const Bytes one_of_each = floats({1, 1, 2});
  const Bytes attention =
      model_of({.op = "Attention",
                .types = {one_of_each, one_of_each, one_of_each, kUnranked},
                .attributes = {int_attribute("q_num_heads", 2), int_attribute("kv_num_heads", 2)},
                .opset = 23});
  const Tensor x = f32({1, 1, 2}, {3, 4});
  expect_tensor(run(attention, {x, x, x, f32({1, 1}, {0})}), x);
}

TEST(OnnxRank, OfRotaryCachesMayBeUnknown) {
  const auto rotary = [](const Bytes& cache) {
    return model_of({.op = "RotaryEmbedding",
                     .types = {floats({1, 1, 1, 4}), cache, cache},
                     .attributes = {int_attribute("rotary_embedding_dim", 2)},
                     .opset = 23});
  };
  const Data inputs = {f32({1, 1, 1, 4}, {1, 2, 3, 4}), f32({1, 1, 2}, {0, 9}), f32({1, 1, 2}, {1, 9})};
  expect_tensor(run(rotary(kUnranked), inputs), f32({1, 1, 1, 4}, {-2, 1, 3, 4}));
  refuse(rotary(kScalar), R"(node "n": slice: axis 2 is out of range for a tensor of rank 0)");
}

TEST(OnnxRank, OfFeaturesMatters) {
  const auto ml = [](const std::string& op, const Messages& types, const Messages& attributes = {}) {
    return model_of({.op = op, .types = types, .attributes = attributes, .opset = 1, .domain = "ai.onnx.ml"});
  };
  const Bytes three = ints_attribute("inputdimensions", {3});
  refuse<UnsupportedError>(
      ml("ArrayFeatureExtractor", {kUnranked, tensor_type(kInt64, {2})}),
      R"(node "n": ArrayFeatureExtractor: the rank of its input must be known when the model is read)");
  refuse<UnsupportedError>(
      ml("FeatureVectorizer", {kUnranked}, {three}),
      R"(node "n": FeatureVectorizer: the rank of its input must be known when the model is read)");
  for (const std::vector<Size>& sizes : {std::vector<Size>{}, {1, 1, 3}})
    refuse(ml("FeatureVectorizer", {floats(sizes)}, {three}),
           fmt::format(R"(node "n": FeatureVectorizer: input 0 is f32{}, but must be [features] or [batch, )"
                       "features]",
                       sizes.empty() ? "[]" : "[1,1,3]"));
}

TEST(OnnxRank, OfALayerMattersOnlyForItsStatistics) {
  const OneNode layer = {.op = "LayerNormalization", .types = {kUnranked, floats({2})}};
  EXPECT_EQ(to_string(import(model_of(layer))->outputs()[0].type()), "f32[*]");
  OneNode with_mean = layer;
  with_mean.outputs = 2;
  refuse<UnsupportedError>(
      model_of(with_mean),
      R"(node "n": LayerNormalization: the rank of its input must be known when the model is read)");
}

// A squeeze of all ones, say, leaves the rank open.
TEST(OnnxRank, NeedNotBeKnownForASplit) {
  const GraphParts parts = {.nodes = {node("Squeeze", {"x"}, {"s"}),
                                      node("Split", {"s"}, {"a", "b", "c"},
                                           {int_attribute("axis", 1), int_attribute("num_outputs", 3)})},
                            .inputs = {value("x", kFloat, {"n", "m", "k"})},
                            .outputs = {untyped("a"), untyped("c")}};
  const Data results =
      run_all(model(parts, {}, {opset(18)}), {f32({2, 1, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9})});
  expect_tensor(results[0].tensor(), f32({2, 2}, {0, 1, 5, 6}));
  expect_tensor(results[1].tensor(), f32({2, 1}, {4, 9}));
}

TEST(OnnxRank, LimitsTheAxisOfASplit) {
  refuse(model_of(
             {.op = "Split", .types = {floats({4})}, .attributes = {int_attribute("axis", 5)}, .outputs = 2}),
         R"(node "n": Split: axis 5 is out of range for a tensor of rank 1)");
}

TEST(OnnxRank, IsNotClaimedWithoutBound) {
  const Bytes shape = tensor_type(kInt64, {int64_t{1} << 61});
  refuse(model_of({.op = "Col2Im", .types = {floats({1, 4, 4}), shape, shape}, .opset = 18}),
         R"(node "n": Col2Im: image_shape: a vector with an element per axis has 2305843009213693952 of )"
         "them; a tensor has at most 1024 axes");
}

TEST(OnnxFlatten, IsOneReshapeWhereASideIsKnown) {
  const auto nodes = [](const Bytes& type, int64_t axis) {
    const auto graph =
        import(model_of({.op = "Flatten", .types = {type}, .attributes = {int_attribute("axis", axis)}}));
    std::string ops;
    for (const Node* node : graph->nodes())
      ops += fmt::format("{} ", node->op().name);
    return ops + to_string(graph->outputs()[0].type());
  };
  EXPECT_EQ(nodes(floats({2, 3, 4}), 1), "constant reshape f32[2,12]");
  EXPECT_EQ(nodes(floats({"n", 3, 4}), 1), "constant reshape f32[n,12]");
  EXPECT_EQ(nodes(floats({"n", "m", 4}), -1), "constant reshape f32[m*n,4]");
  EXPECT_EQ(nodes(floats({"n", 3}), 0), "constant reshape f32[1,3*n]");
  EXPECT_EQ(nodes(floats({2, 3, 0}), 1), "constant reshape f32[2,0]");

  // What is no number must not be told from a product that may be zero.
  const auto flat = [](const Bytes& type, const Tensor& x) {
    return run(model_of({.op = "Flatten", .types = {type}}), {x});
  };
  expect_tensor(flat(floats({"n", 0}), Tensor(DType::F32, {3, 0})), Tensor(DType::F32, {3, 0}));
  expect_tensor(flat(floats({"n", "m", 2}), Tensor(DType::F32, {0, 3, 2})), Tensor(DType::F32, {0, 6}));
  expect_tensor(flat(kUnranked, f32({1, 2, 1}, {5, 7})), f32({1, 2}, {5, 7}));
}

TEST(OnnxSequence, IsConstructedFromSomething) {
  refuse(model_of({.op = "SequenceConstruct"}),
         R"(node "n": SequenceConstruct: it needs at least one input)");
}

// --- small floats

TEST(OnnxSmallFloats, DoNotOverflowOnTheWay) {
  const Tensor x = tensor(DType::F16, {1, 1, 2}, {30000, 40000});
  const auto run_on = [&](const std::string& op, size_t times) {
    return run(model_of({.op = op, .types = Messages(times, type_of_input(x))}), Data(times, x));
  };
  expect_tensor(run_on("Mean", 3), x);
  expect_tensor(run_on("GlobalLpPool", 1), tensor(DType::F16, {1, 1, 1}, {50000}));
}

// --- attributes

TEST(OnnxAttributes, MayBeEmptyListsOfAnyKind) {
  const Bytes of_no_kind = block(1, "axes"), of_floats = block(1, "axes") + number(20, 6);
  for (const Bytes& axes : {of_no_kind, of_floats})
    expect_tensor(run(model_of({.op = "ReduceSum", .types = {floats({2})}, .attributes = {axes}, .opset = 8}),
                      {f32({2}, {1, 2})}),
                  f32({1}, {3}));
  refuse(model_of({.op = "ReduceSum",
                   .types = {floats({2})},
                   .attributes = {block(1, "axes") + block(7, raw<float>({1}))},
                   .opset = 8}),
         R"(node "n": ReduceSum: attribute axes must be ints, but is floats)");
  refuse(model_of({.op = "Flatten", .types = {floats({2})}, .attributes = {block(1, "axis")}}),
         R"(node "n": Flatten: attribute axis must be an int, but is undefined)");
}

TEST(OnnxAttributes, AreNamedWhereTheyAreWrong) {
  const auto cast = [](const Messages& attributes) {
    return model_of({.op = "Cast", .types = {floats({2})}, .attributes = attributes});
  };
  refuse(cast({}), R"(node "n": Cast: attribute to is missing)");
  refuse(cast({int_attribute("to", 99)}),
         R"(node "n": Cast: attribute to: data type 99 is not one of ONNX, wanted 1 to 26)");
  const Bytes unknown = number(1, 1) + number(2, 99);
  refuse(
      model_of({.op = "Constant", .attributes = {tensor_attribute("value", unknown)}}),
      R"(node "n": Constant: attribute value: tensor "": data type 99 is not one of ONNX, wanted 1 to 26)");
  refuse(
      model_of({.op = "Constant",
                .attributes = {sparse_attribute("sparse_value", sparse(unknown, unknown, {1}))}}),
      R"(node "n": Constant: attribute sparse_value: tensor "": data type 99 is not one of ONNX, wanted 1 to 26)");
}

TEST(OnnxAttributes, AreWordsOutOfAList) {
  const auto padded = [](const std::string& op, const std::string& word) {
    return model_of({.op = op,
                     .types = {floats({1, 1, 4}), floats({1, 1, 3})},
                     .attributes = {string_attribute("auto_pad", word)}});
  };
  const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4}), w = f32({1, 1, 3}, {1, 1, 1});
  expect_tensor(run(padded("Conv", ""), {x, w}), f32({1, 1, 2}, {6, 9}));
  expect_tensor(run(padded("Conv", "SAME_LOWER"), {x, w}), f32({1, 1, 4}, {3, 6, 9, 7}));
  expect_tensor(run(padded("ConvTranspose", "VALID"), {x, w}), f32({1, 1, 6}, {1, 3, 6, 9, 7, 4}));
  expect_tensor(run(padded("ConvTranspose", "SAME_UPPER"), {x, w}), f32({1, 1, 4}, {3, 6, 9, 7}));
  for (const std::string op : {"Conv", "ConvTranspose"})
    refuse(padded(op, "SAME"),
           fmt::format("node \"n\": {}: auto_pad is \"SAME\", but must be one of NOTSET, SAME_UPPER, "
                       "SAME_LOWER, VALID",
                       op));
}

}  // namespace
}  // namespace tenon::onnx
