// The walk: what it takes and gives, what it leaves alone, and the choices at kinks.
#include <gtest/gtest.h>

#include "autodiff/gradient.h"
#include "ir/graph_text.h"

namespace tenon {
namespace {

void expect_gradient(std::string_view before, std::string_view after) {
  EXPECT_EQ(difference(*differentiate(*parse_graph(before)), *parse_graph(after)), "");
}

// The gradient of Σ y with respect to the only input, a vector.
void expect_slopes(std::string_view nodes, const std::vector<double>& x, const std::vector<double>& slopes) {
  const auto size = static_cast<int64_t>(x.size());
  const auto graph = parse_graph(fmt::format("graph main(%x: f32[{}]) {{\n{}\nreturn %y\n}}", size, nodes));
  const Data y = evaluate(*graph, {f32({size}, x)});
  const Tensor ones = filled(DType::F32, y.front().tensor().extents(), 1);
  const Data outputs = evaluate(*differentiate(*graph), {f32({size}, x), ones});
  SCOPED_TRACE(nodes);
  expect_tensor(outputs.back(), f32({size}, slopes));
}

TEST(Differentiate, AddsUpTheGradientsOfAValueThatIsUsedTwice) {
  expect_gradient(R"(
    graph main(%x: f32[2]) {
      %0 = exp(%x)
      %y = mul(%0, %x)
      return %y
    })",
                  R"(
    graph main(%x: f32[2], %grad_seed: f32[2]) {
      %0 = exp(%x)
      %y = mul(%0, %x)
      %1 = mul(%grad_seed, %x)
      %2 = mul(%grad_seed, %0)
      %3 = mul(%1, %0)
      %4 = add(%2, %3)
      return %y, %4 as "grad_x"
    })");
}

TEST(Differentiate, GivesGradientsOfParametersButNotOfConstantsOrIntegers) {
  const auto graph = differentiate(*parse_graph(R"(
    graph main(%x: f32[2], %i: i64[2]) {
      %w = parameter(name="w", value=f32[2] {1, 2})
      %c = constant(value=f32[2] {1, 2})
      %0 = mul(%x, %w)
      %y = mul(%0, %c)
      return %y, %i
    })"));
  EXPECT_EQ(graph->output_names(), (std::vector<std::string>{"y", "i", "grad_x", "grad_w"}));
  EXPECT_EQ(graph->input_count(), 3);
}

TEST(Differentiate, TakesASeedForEveryFloatOutput) {
  const auto graph = differentiate(*parse_graph(R"(
    graph main(%x: f32[2]) {
      %a = exp(%x)
      %s = shape(%x)
      %b = neg(%x)
      return %a, %s, %b
    })"));
  ASSERT_EQ(graph->input_count(), 3);
  EXPECT_EQ(graph->input(1).name(), "grad_seed_a");
  EXPECT_EQ(graph->input(2).name(), "grad_seed_b");
  EXPECT_EQ(graph->output_names(), (std::vector<std::string>{"a", "s", "b", "grad_x"}));
}

TEST(Differentiate, FollowsAChoiceBetweenRanks) {
  const auto graph = differentiate(*parse_graph(R"(
    graph main(%x: f32[2], %c: bool[]) {
      %y = if(%c, [%x]) then(%a: f32[2]) {
        %0 = mul(%a, %a)
        return %0
      } else(%b: f32[2]) {
        %s = constant(value=i64[2] {1, 2})
        %1 = reshape(%b, %s)
        return %1
      }
      return %y
    })"));
  EXPECT_EQ(to_string(graph->input(2).type()), "f32[*]");
  const Tensor x = f32({2}, {3, 4});
  expect_tensor(evaluate(*graph, {x, Tensor::scalar(true), f32({2}, {1, 10})}).back(), f32({2}, {6, 80}));
  expect_tensor(evaluate(*graph, {x, Tensor::scalar(false), f32({1, 2}, {1, 10})}).back(), f32({2}, {1, 10}));
}

TEST(Differentiate, DeclinesUnknownRanks) {
  const auto refuse = [](std::string_view nodes, const std::string& message) {
    const auto graph = parse_graph(
        fmt::format("graph main(%x: f32[2], %w: f32[*], %i: i64[*], %g: f32[1]) {{ {} return %y }}", nodes));
    expect_error<UnsupportedError>([&] { differentiate(*graph); }, message);
  };
  const std::string wanted = "an operand of unknown rank has no gradient";
  refuse("%y = reduce_max(%w, axes=[0])", "node %y: the gradient of reduce_max: " + wanted);
  refuse("%y = matmul(%x, %w)", "node %y: the gradient of matmul: " + wanted);
  refuse("%y = batch_norm(%w, %g, %g, %g, %g)", "node %y: the gradient of batch_norm: " + wanted);
  refuse("%y = gather(%x, %i)", "node %y: the gradient of gather: the ranks of its operands must be known");
}

TEST(Differentiate, GivesZerosForWhatTheOutputsDoNotDependOn) {
  const auto graph = differentiate(*parse_graph(R"(
    graph main(%x: f32[2], %z: f32[n]) {
      %y = exp(%x)
      %0 = floor(%x)
      %u = mul(%0, %y)
      return %0
    })"));
  const Data outputs = evaluate(*graph, {f32({2}, {1.5, 2}), f32({3}, {1, 1, 1}), f32({2}, {1, 1})});
  expect_tensor(outputs[1], f32({2}, {0, 0}));
  expect_tensor(outputs[2], f32({3}, {0, 0, 0}));
}

constexpr std::string_view kBands = R"(
    graph main(%x: f32[]) {
      %bands = constant(value=i64[] {3})
      %length = constant(value=i64[] {8})
      %rate = constant(value=i64[] {16})
      %upper = constant(value=f32[] {8})
      %s: f32[5,3] = mel_weights(%bands, %length, %rate, %x, %upper) from "/bands"
      %y = RESULT
      return %y
    })";
std::string bands_and(std::string_view result) {
  std::string text(kBands);
  return text.replace(text.find("RESULT"), 6, result);
}

TEST(Differentiate, NamesANodeThatHasNoGradient) {
  expect_error<UnsupportedError>([] { differentiate(*parse_graph(bands_and("exp(%s)"))); },
                                 "node \"/bands\": mel_weights has no gradient");
}

TEST(Differentiate, LeavesNodesAloneThatAreOnNoPath) {
  EXPECT_NO_THROW(differentiate(*parse_graph(bands_and("exp(%x)"))));
  EXPECT_NO_THROW(differentiate(*parse_graph(bands_and("floor(%s)"))));
}

TEST(Differentiate, NamesANodeWhoseDecompositionDeclines) {
  expect_error<UnsupportedError>(
      [] {
        differentiate(*parse_graph(R"(
          graph main(%x: f32[1,1,4,4], %r: f32[2,4], %i: i64[2]) {
            %y: f32[2,1,1,1] = roi_align(%x, %r, %i, size=[1,1]) from "/regions"
            return %y
          })"));
      },
      "node \"/regions\": the gradient of roi_align: roi_align: with samples=0, the number of samples in "
      "a bin is dynamic");
}

TEST(Differentiate, ComputesTheScoresOfAttentionAgain) {
  const auto graph = differentiate(*parse_graph(R"(
    graph main(%q: f32[1,2,3,4], %k: f32[1,2,5,4], %v: f32[1,2,5,4]) {
      %y = attention(%q, %k, %v, scale=0.5)
      return %y
    })"));
  const std::vector<Node*> nodes = graph->nodes();
  ASSERT_GE(nodes.size(), 2u);
  EXPECT_TRUE(nodes[0]->is("attention"));
  EXPECT_TRUE(nodes[1]->is("attention_scores"));
}

TEST(Differentiate, ChoosesAtKinks) {
  expect_slopes("%y = relu(%x)", {-1, 0, 1}, {0, 0, 1});
  expect_slopes("%y = abs(%x)", {-1, 0, 1}, {-1, 0, 1});
  expect_slopes("%y = leaky_relu(%x, alpha=0.25)", {-1, 0, 1}, {0.25, 0.25, 1});
  expect_slopes("%y = elu(%x, alpha=0.25)", {0, 1}, {0.25, 1});
  expect_slopes("%y = hard_sigmoid(%x, alpha=0.25, beta=0.5)", {-2, 0, 2}, {0, 0.25, 0});
  expect_slopes("%y = hard_swish(%x)", {-3, 3}, {0, 1});
  expect_slopes("%c = constant(value=f32[] {1})\n%y = max(%x, %c)", {0, 1, 2}, {0, 0.5, 1});
  expect_slopes("%c = constant(value=f32[] {1})\n%y = min(%x, %c)", {0, 1, 2}, {1, 0.5, 0});
  expect_slopes("%y = reduce_max(%x, axes=[0])", {1, 3, 3}, {0, 0.5, 0.5});
  expect_slopes("%a = constant(value=f32[] {-1})\n%b = constant(value=f32[] {1})\n%y = clip(%x, %a, %b)",
                {-2, -1, 0, 1, 2}, {0, 1, 1, 1, 0});
  expect_slopes("%c = constant(value=f32[] {0})\n%y = pow(%x, %c)", {0, 2}, {0, 0});
  expect_slopes("%y = reduce_prod(%x, axes=[0])", {2, 0, 3}, {0, 6, 0});
  expect_slopes("%y = reduce_prod(%x, axes=[0])", {0, 0, 3}, {0, 0, 0});
}

TEST(Differentiate, ChoosesAtKinksOfWhatSamples) {
  const std::string row =
      "%i = constant(value=f32[1,1,3] {1, 2, 4})\n%s = constant(value=i64[3] {1, -1, 1})\n"
      "%g = reshape(%x, %s)\n%y = grid_sample(%i, %g, align_corners=true, ";
  expect_slopes(row + "outside=\"zeros\")", {-1, 0, 1, 3}, {1, 2, -4, 0});
  expect_slopes(row + "outside=\"border\")", {-2, -1, 0, 1, 2}, {0, 1, 2, 0, 0});
  const std::string image = "%s = constant(value=i64[4] {1, 1, 2, 2})\n%i = reshape(%x, %s)\n";
  expect_slopes(
      image + "%r = constant(value=f32[1,5] {0, 0, 0, 1, 1})\n%y = max_roi_pool(%i, %r, size=[1,1])",
      {3, 3, 3, 1}, {0.25, 0.5, 0.25, 0});
  expect_slopes(image +
                    "%r = constant(value=f32[1,4] {0, 0, 1, 1})\n%n = constant(value=i64[1] {0})\n"
                    "%y = roi_align(%i, %r, %n, size=[1,1], samples=1, half_pixel=false, mode=\"max\")",
                {3, 3, 1, 1}, {0.125, 0.125, 0, 0});
}

}  // namespace
}  // namespace tenon
