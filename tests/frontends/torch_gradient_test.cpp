// PyTorch's gradients of ops: as those of our conversions, which may look at some arguments alone.
#include "frontends/torch_program.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

using namespace write;

const Json kBoth = {{"as_bools", {true, true, false}}};

TEST(TorchGradients, AreThoseOfTheConversion) {
  const Tensor x = f32({3}, {-2, 0.5, 3}), dy = f32({3}, {1, 10, 100});
  expect_near(run_op("silu_backward.default", {{"grad_output", dy}, {"self", x}}),
              f32({3}, {-0.090784, 7.399612, 108.810415}), 1e-4);
  expect_tensor(run_op("threshold_backward.default", {{"grad_output", dy}, {"self", x}, {"threshold", 0.5}}),
                f32({3}, {0, 0, 100}));
  expect_tensor(run_op("hardtanh_backward.default", {{"grad_output", dy}, {"self", f32({3}, {-1, 0.5, 1})}}),
                f32({3}, {0, 10, 0}));
}

// y = x · w, so that dx = dy · w and dw = Σ dy · x.
TEST(TorchGradients, OfAConvolutionAreThoseAskedFor) {
  const Tensor dy = f32({1, 1, 2}, {10, 100}), x = f32({1, 1, 2}, {3, 4}), w = f32({1, 1, 1}, {5});
  const std::vector<int64_t> ones = {1}, zeros = {0};
  const GivenArguments arguments = {{"grad_output", dy},  {"input", x},          {"weight", w},
                                    {"bias_sizes", ones}, {"stride", ones},      {"padding", zeros},
                                    {"dilation", ones},   {"transposed", false}, {"output_padding", zeros},
                                    {"groups", 1},        {"output_mask", kBoth}};
  OneNode one("convolution_backward.default", arguments, 2);
  one.program.nodes.front().outputs.push_back(none());
  const Data both = run(one.program, one.inputs);
  expect_tensor(both[0], f32({1, 1, 2}, {50, 500}));
  expect_tensor(both[1], f32({1, 1, 1}, {430}));
}

TEST(TorchGradients, ComeFromTheirNode) {
  const auto graph = import(
      OneNode("gelu_backward.default", {{"grad_output", f32({1}, {1})}, {"self", f32({1}, {1})}}).program);
  EXPECT_GT(graph->node_count(), 0);
  for (const Node* node : graph->nodes())
    EXPECT_EQ(node->sources(), std::vector<std::string>{"y0"}) << node->op().name;
}

// The same tensor as input and weight has two gradients, not their sum.
TEST(TorchGradients, TellArgumentsApartThatAreOneTensor) {
  const std::vector<int64_t> ones = {1}, zeros = {0};
  OneNode one("convolution_backward.default",
              {{"grad_output", f32({1, 1, 1}, {10})},
               {"input", f32({1, 1, 1}, {3})},
               {"weight", Given(tensor_name("x1"))},
               {"bias_sizes", Given(none())},
               {"stride", ones},
               {"padding", zeros},
               {"dilation", ones},
               {"transposed", false},
               {"output_padding", zeros},
               {"groups", 1},
               {"output_mask", kBoth}},
              2);
  const Data both = run(one.program, one.inputs);
  expect_tensor(both[0], f32({1, 1, 1}, {30}));
  expect_tensor(both[1], f32({1, 1, 1}, {30}));
}

TEST(TorchGradients, OfAPoolGoWhereItsIndicesSay) {
  expect_tensor(
      run_op("max_pool2d_with_indices_backward.default", {{"grad_output", f32({1, 1, 1, 2}, {1, 10})},
                                                          {"self", f32({1, 1, 2, 3}, {0, 5, 0, 0, 0, 0})},
                                                          {"kernel_size", std::vector<int64_t>{2, 2}},
                                                          {"stride", std::vector<int64_t>{1, 1}},
                                                          {"indices", i64({1, 1, 1, 2}, {1, 1})}}),
      f32({1, 1, 2, 3}, {0, 11, 0, 0, 0, 0}));
}

TEST(TorchGradients, RefuseWhatTheyWouldIgnore) {
  refuse<UnsupportedError>(
      OneNode("gelu_backward.default",
              {{"grad_output", f32({1}, {1})}, {"self", f32({1}, {1})}, {"steepness", 2}})
          .program,
      "node \"y0\": gelu_backward.default: its argument steepness");
  refuse(OneNode("gelu_backward.default", {{"self", f32({1}, {1})}}).program,
         "node \"y0\": gelu_backward.default: argument grad_output is missing");
  refuse<UnsupportedError>(OneNode("embedding_dense_backward.default", {{"grad_output", f32({1, 2}, {1, 1})},
                                                                        {"indices", i64({1}, {0})},
                                                                        {"num_weights", 3},
                                                                        {"padding_idx", -1},
                                                                        {"scale_grad_by_freq", true}})
                               .program,
                           "node \"y0\": embedding_dense_backward.default: gradients that are scaled by how "
                           "often an index occurs");
}

// The kernels for GPUs give states of random numbers, too, and the logsumexp of more queries than there are.
TEST(TorchGradients, OfAttentionComputeItsScoresAgain) {
  const Tensor q = f32({1, 1, 1, 2}, {1, 2}), k = f32({1, 1, 2, 2}, {1, 0, 0, 1}),
               v = f32({1, 1, 2, 1}, {3, 5});
  OneNode one("_scaled_dot_product_efficient_attention.default",
              {{"query", q},
               {"key", k},
               {"value", v},
               {"attn_bias", Given(none())},
               {"compute_log_sumexp", true},
               {"scale", 1.0}},
              4);
  Json json = one.program.json();
  Json& declared = json["graph_module"]["graph"]["tensor_values"];
  declared["y1"] = meta(DType::F32, {1, 1, 32});
  declared["y2"] = meta(DType::I64, {});
  declared["y3"] = meta(DType::I64, {});
  const Data all = evaluate(*import_parts(one.program.parts(json.dump())), one.inputs);
  expect_near(all[0], f32({1, 1, 1, 1}, {4.4621172}), 1e-5);
  EXPECT_NEAR(widen<double>(all[1].tensor())[0], 2.3132617, 1e-5);
  EXPECT_EQ(all[1].tensor().extents(), (Extents{1, 1, 32}));
  expect_tensor(all[2], i64({}, {0}));

  OneNode back("_scaled_dot_product_efficient_attention_backward.default",
               {{"grad_out_", f32({1, 1, 1, 1}, {1})},
                {"query", q},
                {"key", k},
                {"value", v},
                {"attn_bias", Given(none())},
                {"out", f32({1, 1, 1, 1}, {0})},
                {"logsumexp", f32({1, 1, 32}, std::vector<double>(32, 0))},
                {"philox_seed", i64({}, {0})},
                {"philox_offset", i64({}, {0})},
                {"dropout_p", 0.0},
                {"grad_input_mask", Given(Json{{"as_bools", {true, true, true, false}}})},
                {"scale", 1.0}},
               3);
  back.program.nodes.front().outputs.push_back(none());
  const Data gradients = run(back.program, back.inputs);
  // With probabilities p and 1 - p, of which the first is 1 / (1 + e), dv is these, and dp/ds = p (1 - p).
  expect_near(gradients[2], f32({1, 1, 2, 1}, {0.2689414, 0.7310586}), 1e-5);
  expect_near(gradients[0], f32({1, 1, 1, 2}, {-0.3932239, 0.3932239}), 1e-5);
}

// A program that was exported with its backward pass hands out gradients beside its loss.
TEST(TorchGradients, AreOutputsOfAProgramThatComputesThem) {
  OneNode one("mul.Tensor", {{"self", f32({1}, {3})}, {"other", 2.0}});
  Json json = one.program.json();
  json["graph_module"]["signature"]["output_specs"] =
      Json::array({{{"gradient_to_user_input", {{"arg", {{"name", "y0"}}}, {"user_input_name", "x0"}}}}});
  const auto graph = import_parts(one.program.parts(json.dump()));
  EXPECT_EQ(graph->output_names(), std::vector<std::string>{"grad_x0"});
}

}  // namespace
}  // namespace tenon::torch
