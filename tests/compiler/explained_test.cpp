#include <gtest/gtest.h>

#include "compile_here.h"
#include "compiler/expect_compiled.h"
#include "ir/graph_text.h"

namespace tenon {

using compiler::compile_explained;
using compiler::ExplainedProgram;
using compiler::fusion_of;
using compiler::kernels_of;

namespace {

constexpr std::string_view kShares = R"(
    graph main(%x: f32[6,4]) {
      %s = reduce_sum(%x, axes=[1], keep_dims=true)
      %y = div(%x, %s)
      return %y
    })";

TEST(CompileExplained, TellsWhatTheOtherWaysTell) {
  const std::unique_ptr<Graph> graph = parse_graph(kShares);
  const ExplainedProgram explained = compile_explained(*graph, here());
  EXPECT_EQ(explained.kernels, kernels_of(*graph, here()));
  EXPECT_EQ(explained.fusion.after.size(), fusion_of(*graph, here()).after.size());
  const Data inputs{f32({6, 4}, std::vector<double>(24, 2.0))};
  EXPECT_EQ(widen<double>(explained.executor->run(inputs)[0].tensor()), std::vector<double>(24, 0.25));
}

// One nest after the other, over whole buffers.
TEST(CompileExplained, ShowsKernelsBeforeTheyAreArranged) {
  const std::unique_ptr<Graph> graph = parse_graph(kShares);
  const ExplainedProgram explained = compile_explained(*graph, here());
  ASSERT_EQ(explained.plain.size(), 1U);
  EXPECT_EQ(loops::print(explained.plain[0]), R"(kernel kernel(x0: f32[6,4]) -> (y0: f32[6,4]) {
  local t0: f32[6,1]
  for r0 in 0..6 {
    t0[r0,0] = 0
    for k0 in 0..4 {
      t0[r0,0] += x0[r0,k0]
    }
  }
  for r0 in 0..6 {
    for r1 in 0..4 {
      y0[r0,r1] = x0[r0,r1] / t0[r0,0]
    }
  }
}
)");
}

// In the order that they have in the model, not that in which kernels read them.
TEST(CompileExplained, ShowsWeightsAsTheyAreWritten) {
  const auto products = [](std::string_view text) {
    std::string all;
    for (const loops::Kernel& kernel : compile_explained(*read(text), without_cache()).plain)
      all += loops::print(kernel);
    return all;
  };
  const std::string matmul =
      products("graph g(%x: f32[40,33], %w: f32[33,900]) { %0 = matmul(%x, %w) return %0 }");
  EXPECT_TRUE(has(matmul, "+= x0[r0,k0] * x1[k0,r1]")) << matmul;
  const std::string conv = products(
      "graph g(%x: f32[1,64,24,24], %w: f32[64,64,3,3]) { %0 = conv(%x, %w, strides=[1,1], "
      "dilations=[1,1], pads=[1,1,1,1]) return %0 }");
  EXPECT_TRUE(has(conv, "* x1[r2,k2,k0,k1]")) << conv;
}

}  // namespace
}  // namespace tenon
