#include "compiler/expect_compiled.h"

namespace tenon {
namespace {

std::string transposed(std::string_view x, std::string_view w, std::string_view attributes) {
  return fmt::format(
      "graph g(%x: f32[{}], %w: f32[{}]) {{ %0 = conv_transpose(%x, %w, {}) %1 = relu(%0) return %1 }}", x, w,
      attributes);
}

TEST(GatherConvolutions, TakesStridesAndPadding) {
  for (const auto& [x, w, attributes] : std::vector<std::array<const char*, 3>>{
           {"2,9,5,6", "9,12,2,2", "strides=[2,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]"},
           {"2,9,5,6", "9,12,4,4", "strides=[2,2], dilations=[1,1], pads=[1,1,1,1], output_padding=[0,0]"},
           {"1,9,5,6", "9,12,3,3", "strides=[2,2], dilations=[1,1], pads=[1,1,1,1], output_padding=[1,1]"},
           {"1,9,5,6", "9,12,5,4", "strides=[2,3], dilations=[1,1], pads=[2,1,2,1], output_padding=[1,0]"},
           {"1,9,5,6", "9,12,3,6", "strides=[1,3], dilations=[1,1], pads=[1,0,0,2], output_padding=[0,1]"},
           {"1,3,5,6", "3,1,3,2", "strides=[3,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]"},
           {"1,4,7", "4,16,6", "strides=[3], dilations=[1], pads=[2,0], output_padding=[2]"},
           {"1,4,3,4,5", "4,8,4,2,2",
            "strides=[2,1,2], dilations=[1,1,1], pads=[1,0,0,1,0,1], output_padding=[0,0,0]"},
           {"n,9,5,6", "9,12,2,2", "strides=[2,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]"},
       }) {
    const std::unique_ptr<Graph> graph = read(transposed(x, w, attributes));
    EXPECT_FALSE(has(kernels_in(*graph), "mod(")) << kernels_in(*graph);
    expect_as_evaluated(*graph, {{"n", 3}});
  }
}

// As where a batch normalisation was folded into them.
TEST(GatherConvolutions, TakesWeightsThatAreComputed) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%x: f32[1,32,5,6], %w: f32[32,48,4,4], %w_scale: f32[48,1,1]) {
    %0 = mul(%w, %w_scale)
    %1 = conv_transpose(%x, %0, strides=[2,2], dilations=[1,1], pads=[1,1,1,1], output_padding=[0,0])
    return %1
  })");
  EXPECT_FALSE(has(kernels_in(*graph), "mod(")) << kernels_in(*graph);
  expect_as_evaluated(*graph);
}

// No weight is taken for 0, which would make NaN of an infinity.
TEST(GatherConvolutions, SpreadsNoInfinity) {
  const std::unique_ptr<Graph> graph = read(transposed(
      "1,8,4,4", "8,8,3,3", "strides=[2,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]"));
  Tensor x = numbers(DType::F32, {1, 8, 4, 4}, 1);
  x.mutable_data<float>()[5] = std::numeric_limits<float>::infinity();
  const Data inputs{x, numbers(DType::F32, {8, 8, 3, 3}, 2)};
  const Tensor wanted = evaluate(*graph, inputs).front().tensor(),
               got = compile(*graph, without_cache())->run(inputs).front().tensor();
  for (size_t i = 0; i < wanted.data<float>().size(); ++i)
    EXPECT_EQ(std::isfinite(got.data<float>()[i]), std::isfinite(wanted.data<float>()[i])) << i;
}

// Groups, windows with holes or smaller than the stride, images of any size, and padding that takes away
// all that an element reaches.
TEST(GatherConvolutions, LeavesOthersAlone) {
  for (const auto& [x, w, attributes] : std::vector<std::array<const char*, 3>>{
           {"2,8,5,6", "8,12,2,2",
            "strides=[2,2], dilations=[1,1], pads=[0,0,0,0], groups=2, output_padding=[0,0]"},
           {"2,8,5,6", "8,12,2,2", "strides=[2,2], dilations=[2,1], pads=[0,0,0,0], output_padding=[0,0]"},
           {"1,8,n,6", "8,12,2,2", "strides=[2,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]"},
           {"1,8,5,6", "8,12,2,2", "strides=[2,2], dilations=[1,1], pads=[0,0,3,3], output_padding=[0,0]"},
           {"1,8,5,6", "8,12,1,1", "strides=[4,4], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]"},
       }) {
    const std::unique_ptr<Graph> graph = read(transposed(x, w, attributes));
    EXPECT_TRUE(has(kernels_in(*graph), "mod(")) << kernels_in(*graph);
    expect_as_evaluated(*graph, {{"n", 4}});
  }
}

}  // namespace
}  // namespace tenon
