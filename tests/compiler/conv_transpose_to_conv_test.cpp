#include "passes/target/conv_transpose_to_conv.h"

#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "ir/lint.h"
#include "sanitized.h"

namespace tenon {

using compiler::compile;
using compiler::CompileContext;

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

TEST(GatherConvolutions, TakesImagesOfAnySize) {
  for (const auto& [x, w, attributes] : std::vector<std::array<const char*, 3>>{
           {"n,9,h,w", "9,12,2,2", "strides=[2,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]"},
           {"2,9,h,w", "9,12,4,4", "strides=[2,2], dilations=[1,1], pads=[1,1,1,1], output_padding=[0,0]"},
           {"n,9,h,6", "9,12,3,3", "strides=[2,2], dilations=[1,1], pads=[1,1,1,1], output_padding=[1,1]"},
           {"1,9,2*h,w+1", "9,12,5,4",
            "strides=[2,3], dilations=[1,1], pads=[2,1,2,1], output_padding=[1,0]"},
           {"1,3,h,w", "3,1,3,2", "strides=[3,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]"},
           {"n,4,w", "4,16,6", "strides=[3], dilations=[1], pads=[2,0], output_padding=[2]"},
           {"1,16,h", "16,1,4", "strides=[2], dilations=[1], pads=[1,1], groups=16, output_padding=[0]"},
       }) {
    const std::unique_ptr<Graph> graph = read(transposed(x, w, attributes));
    EXPECT_FALSE(has(kernels_in(*graph), "mod(")) << kernels_in(*graph);
    for (const int64_t size : {1, 2, 5, 16})
      expect_as_evaluated(*graph, {{"n", 3}, {"h", size}, {"w", size + 2}});
  }
}

// Sizes that follow from those of two such images are long formulas.
TEST(GatherConvolutions, AreConvolvedAgainInStrides) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%x: f32[2,32,h,v], %w: f32[32,2,1,1], %w2: f32[16,64,3,3]) {
    %0 = conv_transpose(%x, %w, strides=[3,3], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0], groups=32)
    %1 = conv(%0, %w2, strides=[2,2], dilations=[1,1], pads=[1,1,1,1], groups=1)
    return %1
  })");
  expect_as_evaluated(*graph, {{"h", 2}, {"v", 17}});
}

// As where a batch normalisation was folded into them.
TEST(GatherConvolutions, TakesWeightsThatAreComputed) {
  for (const char* attributes : {"dilations=[1,1], groups=1", "dilations=[2,1], groups=4"}) {
    const std::unique_ptr<Graph> graph =
        read(fmt::format(R"(graph g(%x: f32[1,32,5,6], %w: f32[32,48,4,4], %w_scale: f32[48,1,1]) {{
      %0 = mul(%w, %w_scale)
      %1 = conv_transpose(%x, %0, strides=[2,2], {}, pads=[1,1,1,1], output_padding=[0,0])
      return %1
    }})",
                         attributes));
    EXPECT_FALSE(has(kernels_in(*graph), "mod(")) << kernels_in(*graph);
    expect_as_evaluated(*graph);
  }
}

// As of a network that makes the weights of another.
TEST(GatherConvolutions, TakesWeightsThatOnlyRunningTells) {
  for (const auto& [x, v, attributes] : std::vector<std::array<const char*, 3>>{
           {"1,32,5,6", "32,24,3,3", "strides=[2,2], dilations=[1,1], pads=[0,0,0,0], groups=1"},
           {"2,8,5,6", "8,12,4,5", "strides=[2,3], dilations=[1,2], pads=[1,0,1,2], groups=2"},
           {"n,16,5,6", "16,1,4,2", "strides=[2,3], dilations=[1,1], pads=[1,1,1,1], groups=16"},
       }) {
    const std::unique_ptr<Graph> graph =
        read(fmt::format("graph g(%x: f32[{}], %v: f32[{}], %scale: f32[{}]) {{ %0 = mul(%v, %scale) %1 = "
                         "conv_transpose(%x, %0, {}, output_padding=[0,0]) return %1 }}",
                         x, v, v, attributes));
    EXPECT_FALSE(has(kernels_in(*graph), "mod(")) << kernels_in(*graph);
    expect_as_evaluated(*graph, {{"n", 3}});
    CompileContext strict = without_cache();
    strict.numerics = NumericsBudget::Strict;
    EXPECT_TRUE(has(kernels_in(*graph, strict), "mod(")) << "an infinite one may meet the padding";
  }
}

// No weight is taken for 0, which would make NaN of an infinity.
TEST(GatherConvolutions, SpreadsNoInfinity) {
  for (const char* attributes :
       {"strides=[2,2], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]",
        "strides=[2,3], dilations=[2,2], pads=[1,0,0,1], groups=2, output_padding=[1,0]",
        "strides=[3,1], dilations=[2,1], pads=[0,0,0,0], groups=8, output_padding=[0,0]"}) {
    const Extents w_extents{8, has(attributes, "groups=8") ? 1 : 4, 3, 3};
    const std::unique_ptr<Graph> graph =
        read(transposed("1,8,4,4", fmt::format("{}", fmt::join(w_extents, ",")), attributes));
    Tensor x = numbers(DType::F32, {1, 8, 4, 4}, 1);
    x.mutable_data<float>()[5] = std::numeric_limits<float>::infinity();
    const Data inputs{x, numbers(DType::F32, w_extents, 2)};
    const Tensor wanted = evaluate(*graph, inputs).front().tensor(),
                 got = compile(*graph, without_cache())->run(inputs).front().tensor();
    for (size_t i = 0; i < wanted.data<float>().size(); ++i)
      EXPECT_EQ(std::isfinite(got.data<float>()[i]), std::isfinite(wanted.data<float>()[i])) << i;
  }
}

TEST(GatherConvolutions, TakesGroups) {
  for (const auto& [x, w, attributes] : std::vector<std::array<const char*, 3>>{
           {"2,8,5,6", "8,12,2,2",
            "strides=[2,2], dilations=[1,1], pads=[0,0,0,0], groups=2, output_padding=[0,0]"},
           {"1,32,5,6", "32,1,4,4",
            "strides=[2,2], dilations=[1,1], pads=[1,1,1,1], groups=32, output_padding=[0,0]"},
           {"n,32,5,6", "32,3,3,3",
            "strides=[2,1], dilations=[1,1], pads=[1,0,1,2], groups=32, output_padding=[1,0]"},
           {"1,20,7", "20,5,6", "strides=[3], dilations=[1], pads=[2,0], groups=4, output_padding=[2]"},
           {"1,6,3,4,5", "6,2,3,2,3",
            "strides=[2,1,2], dilations=[1,1,1], pads=[1,0,0,1,0,1], groups=3, output_padding=[0,0,0]"},
       }) {
    const std::unique_ptr<Graph> graph = read(transposed(x, w, attributes));
    EXPECT_FALSE(has(kernels_in(*graph), "mod(")) << kernels_in(*graph);
    expect_as_evaluated(*graph, {{"n", 3}});
  }
}

// And windows that are smaller than their strides, so that zeros are left between results.
TEST(GatherConvolutions, TakesDilationsAndGaps) {
  for (const auto& [x, w, attributes] : std::vector<std::array<const char*, 3>>{
           {"2,9,5,6", "9,12,3,3", "strides=[1,1], dilations=[2,3], pads=[2,2,3,3], output_padding=[0,0]"},
           {"n,9,5,6", "9,12,3,3", "strides=[2,2], dilations=[2,2], pads=[1,2,2,2], output_padding=[1,0]"},
           {"1,9,5,6", "9,12,3,4", "strides=[2,3], dilations=[3,2], pads=[0,1,2,0], output_padding=[0,2]"},
           {"1,9,5,6", "9,12,1,2", "strides=[4,3], dilations=[1,2], pads=[0,1,0,0], output_padding=[3,1]"},
           {"1,8,7", "8,2,5", "strides=[4], dilations=[6], pads=[3,5], groups=4, output_padding=[1]"},
           {"1,8,3,4,5", "8,1,2,3,2",
            "strides=[2,1,3], dilations=[2,2,1], pads=[1,0,0,1,3,1], groups=8, output_padding=[0,0,0]"},
           {"1,8,5,6", "8,12,2,2", "strides=[2,2], dilations=[1,1], pads=[0,0,3,3], output_padding=[0,0]"},
       }) {
    const std::unique_ptr<Graph> graph = read(transposed(x, w, attributes));
    EXPECT_FALSE(has(kernels_in(*graph), "mod(")) << kernels_in(*graph);
    expect_as_evaluated(*graph, {{"n", 3}});
  }
}

// What the rewritten graph evaluates to, without compiling it; whether anything was rewritten.
bool expect_same_when_gathered(const Graph& graph) {
  const std::unique_ptr<Graph> gathered = graph.clone();
  Journal journal(NumericsBudget::Strict);
  conv_transpose_to_conv(*gathered, journal);
  EXPECT_EQ(lint(*gathered), std::vector<std::string>());
  const Data inputs = inputs_for(graph, {});
  const std::vector<double> wanted = widen<double>(evaluate(graph, inputs).front().tensor()),
                            got = widen<double>(evaluate(*gathered, inputs).front().tensor());
  EXPECT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-12) << print(graph);
  return print(*gathered) != print(graph);
}

TEST(GatherConvolutions, AgreesForEveryStrideAndDilation) {
  constexpr int64_t kMost = kIsSanitized ? 3 : 6;
  // Few results or many, of one group or more; few in each group, so that regions stand alone, or enough.
  for (const auto& [channels, filters, groups] :
       std::vector<std::array<int64_t, 3>>{{4, 3, 2}, {4, 9, 1}, {4, 8, 2}, {8, 1, 8}})
    for (int64_t stride = 1; stride <= kMost; ++stride)
      for (int64_t dilation = 1; dilation <= kMost; ++dilation)
        for (int64_t kernel = 1; kernel <= 5; ++kernel)
          for (const auto& [before, after, more] : std::vector<std::array<int64_t, 3>>{
                   {0, 0, 0}, {0, 0, stride - 1}, {1, 0, 0}, {0, 3, 0}, {4, 1, 0}, {2, 7, 0}, {11, 0, 0}}) {
            const int64_t result = 3 * stride + (kernel - 1) * dilation + 1 + more - before - after;
            if (result < 0)
              continue;
            const std::unique_ptr<Graph> graph = read(
                fmt::format("graph g(%x: f64[2,{0},4], %w: f64[{0},{1},{2}]) {{ %0 = conv_transpose(%x, %w, "
                            "strides=[{3}], dilations=[{4}], pads=[{5},{6}], groups={7}, "
                            "output_padding=[{8}]) return %0 }}",
                            channels, filters, kernel, stride, dilation, before, after, groups, more));
            const bool is_gathered = expect_same_when_gathered(*graph);
            EXPECT_TRUE(is_gathered || before + after > 0) << print(*graph);
            EXPECT_TRUE(!is_gathered || result >= stride) << print(*graph);
          }
}

TEST(GatherConvolutions, AgreesInSeveralDimensions) {
  const std::vector<std::array<int64_t, 4>> slides = {// stride, dilation, kernel, padding
                                                      {1, 2, 3, 2},
                                                      {2, 1, 3, 1},
                                                      {2, 2, 2, 0},
                                                      {3, 2, 4, 2},
                                                      {4, 1, 2, 0}};
  for (const auto& [stride, dilation, kernel, padding] : slides)
    for (const auto& [other_stride, other_dilation, other_kernel, other_padding] : slides)
      for (const auto& [channels, filters, groups] :
           std::vector<std::array<int64_t, 3>>{{2, 3, 1}, {4, 4, 2}, {8, 1, 8}}) {
        const std::unique_ptr<Graph> graph = read(fmt::format(
            "graph g(%x: f64[2,{0},3,4,2], %w: f64[{0},{1},{2},{3},2]) {{ %0 = conv_transpose(%x, %w, "
            "strides=[{4},{5},2], dilations=[{6},{7},1], pads=[{8},{9},0,{8},0,1], groups={10}, "
            "output_padding=[0,0,1]) return %0 }}",
            channels, filters, kernel, other_kernel, stride, other_stride, dilation, other_dilation, padding,
            other_padding, groups));
        EXPECT_TRUE(expect_same_when_gathered(*graph)) << print(*graph);
      }
}

TEST(GatherConvolutions, AgreesUnderStrictNumerics) {
  const std::unique_ptr<Graph> graph =
      read(transposed("1,32,7,9", "32,8,3,3",
                      "strides=[2,1], dilations=[1,2], pads=[1,2,1,2], groups=4, output_padding=[1,0]"));
  CompileContext options = without_cache();
  options.numerics = NumericsBudget::Strict;
  const Data inputs = inputs_for(*graph, {});
  const std::vector<double> wanted = widen<double>(evaluate(*graph, inputs).front().tensor()),
                            got = widen<double>(compile(*graph, options)->run(inputs).front().tensor());
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    EXPECT_NEAR(got[i], wanted[i], 1e-5) << i;
}

// Sizes that only running tells, padding that takes away all that an element reaches, strides
// beyond reason, and such that hardly any regions would be one convolution.
TEST(GatherConvolutions, LeavesOthersAlone) {
  const char* attributes = "strides=[2,2], dilations=[1,2], pads=[0,0,0,0], groups=2, output_padding=[0,0]";
  for (const std::string& text :
       {transposed("1,8,n,6", "8,12,2,2",  // which may be padded away
                   "strides=[2,2], dilations=[1,1], pads=[2,0,2,0], output_padding=[0,0]"),
        transposed("1,8,3,3", "8,12,1,2",
                   "strides=[1,1], dilations=[1,1], pads=[3,0,0,0], output_padding=[2,0]"),
        transposed("1,8,2,2", "8,12,2,2",
                   "strides=[5000,1], dilations=[1,1], pads=[0,0,0,0], output_padding=[0,0]"),
        transposed("1,8,2,2", "8,4,7,7",
                   "strides=[7,7], dilations=[3,3], pads=[0,0,0,0], output_padding=[0,0]"),
        fmt::format(
            "graph g(%x: f32[1,8,5,6], %v: f32[8,k,2,2]) {{ %0 = conv_transpose(%x, %v, {}) return %0 }}",
            attributes)}) {
    const std::unique_ptr<Graph> graph = read(text);
    const std::string before = print(*graph);
    Journal journal;
    conv_transpose_to_conv(*graph, journal);
    EXPECT_EQ(print(*graph), before);
    expect_as_evaluated(*graph, {{"n", 4}, {"k", 12}});
  }
}

}  // namespace
}  // namespace tenon
