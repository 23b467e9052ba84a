// Layouts of images on a GPU by name: which kernels there are, and that they compute what the evaluator does,
// run by the interpreter of loops.
#include "compiler/expect_compiled.h"

namespace tenon {
namespace {

compiler::CompileContext for_gpu() {
  compiler::CompileContext context = for_target("avx512");
  context.backend = &compiler::backend_named("cuda");
  context.device = compiler::kNoDevice;
  context.target = beside(context.target, gpu_named("sm_90"));
  return context;
}

void expect_interpreted_as_evaluated(const Graph& graph, double tolerance) {
  const Data inputs = inputs_for(graph, {});
  InterpretedGraph interpreted(graph, for_gpu());
  RandomGenerator random(0);
  const Data got = interpreted.run(inputs, random), wanted = evaluate(graph, inputs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    ASSERT_EQ(got[i].tensor().extents(), wanted[i].tensor().extents());
    const std::vector<double> a = widen<double>(got[i].tensor()), b = widen<double>(wanted[i].tensor());
    for (size_t k = 0; k < a.size(); ++k)
      ASSERT_NEAR(a[k], b[k], tolerance) << "output " << i << ", element " << k;
  }
}

// Between them, channels are last; the input is brought into that order, and the output leaves it.
TEST(GpuLayouts, PutChannelsLast) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%x: f16[1,16,5,6], %w1: f16[24,16,1,1], %w2: f16[16,24,3,3]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %1 = relu(%0)
        %2 = conv(%1, %w2, strides=[2,2], dilations=[1,1], pads=[1,0,1,2])
        return %2
      })");
  const std::string text = kernels_in(*graph, for_gpu());
  EXPECT_TRUE(has(text, "(x0: f16[1,16,30]) -> (y0: f16[1,30,16])")) << text;
  EXPECT_TRUE(has(text, "-> (y0: f16[1,7,8,24])")) << text;  // without padding
  EXPECT_TRUE(has(text, "-> (y0: f16[1,16,4,4])")) << text;
  EXPECT_EQ(kernels_of(*graph, for_gpu()).size(), 3) << text;
  expect_interpreted_as_evaluated(*graph, 0.05);
}

// A model whose images have their channels last computes with them as they are.
TEST(GpuLayouts, NeedNoCopyOfWhatHasChannelsLast) {
  const std::unique_ptr<Graph> graph = read(R"(graph g(%x: f16[1,4,4,16], %w1: f16[16,16,3,3]) {
        %0 = transpose(%x, permutation=[0,3,1,2])
        %1 = conv(%0, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %2 = relu(%1)
        %3 = transpose(%2, permutation=[0,2,3,1])
        return %3
      })");
  EXPECT_EQ(kernels_of(*graph, for_gpu()).size(), 1) << kernels_in(*graph, for_gpu());
  expect_interpreted_as_evaluated(*graph, 0.05);
}

TEST(GpuLayouts, ReachAllThatIsMadePixelByPixel) {
  const std::unique_ptr<Graph> graph = read(
      R"(graph g(%x: f32[1,8,6,6], %w1: f32[16,8,3,3], %w2: f32[16,1,5,5], %w3: f32[8,16,1,1], %w4: f32[16,1,1]) {
        %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
        %1, %i = max_pool(%0, kernel=[3,3], strides=[2,2], dilations=[1,1], pads=[1,1,1,1])
        %2 = conv(%1, %w2, strides=[1,1], dilations=[1,1], pads=[2,2,2,2], groups=16)
        %3 = add(%2, %w4)
        %4 = reduce_mean(%3, axes=[2,3], keep_dims=true)
        %5 = sigmoid(%4)
        %6 = mul(%3, %5)
        %7 = conv(%6, %w3, strides=[1,1], dilations=[1,1], pads=[0,0,0,0])
        %8 = sigmoid(%7)
        return %8
      })");
  EXPECT_FALSE(has(kernels_in(*graph, for_gpu()), "f32[1,16,3,3]")) << kernels_in(*graph, for_gpu());
  expect_interpreted_as_evaluated(*graph, 1e-4);
}

// What the caller reads, or what is seen under another shape, is written in the order that it has there.
TEST(GpuLayouts, LeaveOutputsAsTheyAre) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%x: f32[1,16,3,4], %w1: f32[16,16,3,3], %w2: f32[192,8]) {
      %0 = conv(%x, %w1, strides=[1,1], dilations=[1,1], pads=[1,1,1,1])
      %1 = relu(%0)
      %s = constant(value=i64[2] {1, 192})
      %2 = reshape(%1, %s)
      %3 = matmul(%2, %w2)
      return %1, %3
    })");
  EXPECT_FALSE(has(kernels_in(*graph, for_gpu()), "-> (y0: f32[1,3,4,16], "))
      << kernels_in(*graph, for_gpu());
  expect_interpreted_as_evaluated(*graph, 1e-3);
}

TEST(GpuLayouts, LeaveAloneWhatIsNotConvolved) {
  for (const char* text : {"graph g(%x: f32[2,16,6,6]) { %0, %i = max_pool(%x, kernel=[2,2], strides=[2,2], "
                           "dilations=[1,1], pads=[0,0,0,0]) %1 = relu(%0) return %1 }",
                           // Weights that are no constants.
                           "graph g(%x: f32[2,16,6,6], %k: f32[16,16,3,3]) { %0 = conv(%x, %k, "
                           "strides=[1,1], dilations=[1,1], pads=[1,1,1,1]) %1 = relu(%0) return %1 }",
                           // Few channels, which stay where they are.
                           "graph g(%x: f32[2,3,6,6], %w: f32[16,3,3,3]) { %0 = conv(%x, %w, strides=[1,1], "
                           "dilations=[1,1], pads=[1,1,1,1]) %1 = relu(%0) return %1 }"}) {
    const std::string kernels = kernels_in(*read(text), for_gpu());
    EXPECT_FALSE(has(kernels, "6,6,16]")) << kernels;
  }
}

}  // namespace
}  // namespace tenon
