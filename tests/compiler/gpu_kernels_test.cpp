// gpu_kernels_test.cpp — which kernels a graph becomes on a GPU by name, on every host: what its
// multiprocessors have room for, and what is worth a launch.
#include <gtest/gtest.h>

#include "compile_here.h"
#include "compiler/explain_contraction.h"
#include "ir/parse.h"
#include "ops/registry.h"

namespace tenon {
namespace {

compiler::CompileContext for_gpu(std::string_view name) {
  compiler::CompileContext context = for_target("avx512");
  context.backend = &compiler::backend_named("cuda");
  context.device = compiler::kNoDevice;
  context.target = beside(context.target, gpu_named(name));
  return context;
}

std::unique_ptr<Graph> read(const std::string& text) {
  register_ops();
  return parse(text);
}

size_t count_kernels(const std::string& text, std::string_view gpu = "sm_90") {
  return compiler::kernels_of(*read(text), for_gpu(gpu)).size();
}

// A step for each: "host scatter_elements", or "kernel0".
std::string steps_of(const std::string& text, std::string_view gpu = "sm_90") {
  const compiler::ScheduledGraph scheduled = compiler::schedule_graph(*read(text), for_gpu(gpu));
  std::string steps;
  for (const runtime::Step& step : scheduled.program->steps) {
    if (const auto* kernel = std::get_if<runtime::KernelStep>(&step))
      steps += kernel->name() + "; ";
    if (const auto* host = std::get_if<runtime::HostStep>(&step))
      steps += fmt::format("host {}; ", host->op);
  }
  return steps;
}

// --- dtypes ---

std::string kernels_in(const std::string& text) {
  std::string all;
  for (const loops::Kernel& kernel : compiler::kernels_of(*read(text), for_gpu("sm_90")))
    all += loops::print(kernel);
  return all;
}

// Tensor cores multiply halves, so what kernels pass on stays f16, and so do weights; a CPU converts them
// once.
TEST(GpuKernels, StoreHalvesThatAProductReads) {
  const std::string kernels = kernels_in(R"(graph g(%x: f16[8192,512], %w: f16[512,512], %v: f16[512,512]) {
    %0 = matmul(%x, %w)
    %1 = relu(%0)
    %2 = matmul(%1, %v)
    return %2
  })");
  EXPECT_EQ(kernels.find("y0: f32"), std::string::npos) << kernels;
  EXPECT_EQ(kernels.find("x0: f32"), std::string::npos) << kernels;
  EXPECT_NE(kernels.find("y0: f16[8192,512]"), std::string::npos) << kernels;
}

TEST(GpuKernels, StoreHalvesThatAConvolutionReads) {
  const std::string kernels = kernels_in(R"(graph g(%x: f16[32,64,56,56], %w: f16[64,64,3,3]) {
    %0 = conv(%x, %w, pads=[1,1,1,1])
    %1 = relu(%0)
    %2 = conv(%1, %w, pads=[1,1,1,1])
    return %2
  })");
  EXPECT_EQ(kernels.find("y0: f32"), std::string::npos) << kernels;
  EXPECT_EQ(kernels.find("x1: f32"), std::string::npos) << kernels;
}

// --- what is said of them ---

// The products of attention are part of its kernel; nothing was chosen for them.
TEST(GpuKernels, SayNothingOfProductsWithinAttention) {
  const std::unique_ptr<Graph> graph =
      read(R"(graph g(%q: f16[8,16,512,64], %k: f16[8,16,512,64], %x: f16[1024,1024]) {
    %0 = attention(%q, %k, %k, scale=0.125) from "attention"
    %1 = matmul(%x, %x) from "product"
    return %0, %1
  })");
  const compiler::FusionReport fusion = compiler::fusion_of(*graph, for_gpu("sm_90"));
  EXPECT_EQ(
      compiler::explain_contraction(fusion, "attention"),
      "\"attention\"\n  no contraction of its own: pointwise, a reduction along rows, or fused attention\n");
  EXPECT_NE(compiler::explain_contraction(fusion, "product").find("on tensor cores"), std::string::npos);
}

// --- shared memory ---

std::string scatter_of(std::string_view type) {
  return fmt::format(R"(graph g(%x: {0}, %i: i64[5,400], %u: f16[5,400]) {{
    %0 = scatter_elements(%x, %i, %u, axis=0, reduction="add")
    %1 = relu(%0)
    return %1
  }})",
                     type);
}

// f16 is added up in f32, in shared memory.
TEST(GpuKernels, ScatterOnTheHostWhatABlockHasNoSharedMemoryFor) {
  EXPECT_EQ(steps_of(scatter_of("f16[100,400]")), "kernel0; kernel1; ");
  EXPECT_EQ(steps_of(scatter_of("f16[100,400]"), "sm_89"), "host scatter_elements; kernel0; ");
  EXPECT_EQ(steps_of(scatter_of("f16[400,400]")), "host scatter_elements; kernel0; ");
}

TEST(GpuKernels, ScatterOnTheHostWhereItsSizeIsNotKnown) {
  EXPECT_EQ(steps_of(scatter_of("f16[n,400]")), "host scatter_elements; kernel0; ");
}

// A row that is also read backwards is in shared memory.
std::string read_backwards(int64_t length) {
  return fmt::format(R"(graph g(%x: f32[4096,{0}]) {{
    %b = constant(value=i64[1]{{-1}})
    %e = constant(value=i64[1]{{{1}}})
    %0 = softmax(%x, axis=-1)
    %1 = exp(%0)
    %2 = slice(%1, %b, %e, %b, axes=[1])
    %3 = add(%2, %1)
    return %3
  }})",
                     length, -length - 1);
}

// A cluster has no memory that all of its blocks read.
TEST(GpuKernels, KeepRowsApartThatAreReadBackwardsAndFitNoBlock) {
  EXPECT_EQ(count_kernels(read_backwards(40000)), 2U);
}

TEST(GpuKernels, KeepLongRowsApartOfWhichElementsAreGathered) {
  EXPECT_EQ(count_kernels(R"(graph g(%x: f32[16,65538], %i: i64[16,8]) {
    %b = constant(value=i64[1]{1})
    %e = constant(value=i64[1]{65538})
    %0 = slice(%x, %b, %e, %b, axes=[1])
    %1 = softmax(%0, axis=-1)
    %2 = gather_elements(%1, %i, axis=1)
    return %2
  })"),
            2U);
}

TEST(GpuKernels, FuseRowsOfWhichAMultiprocessorHoldsTwo) {
  EXPECT_EQ(count_kernels(read_backwards(20000)), 1U);
}

TEST(GpuKernels, TakeRowsApartOfWhichAMultiprocessorHoldsOne) {
  EXPECT_EQ(count_kernels(read_backwards(32000)), 2U);
  EXPECT_EQ(count_kernels(read_backwards(26000), "sm_80"), 2U);
  const std::unique_ptr<Graph> graph = read(read_backwards(32000));
  const compiler::FusionReport fusion = compiler::fusion_of(*graph, for_gpu("sm_90"));
  ASSERT_EQ(fusion.edges.size(), 1U);
  EXPECT_EQ(fusion.edges.front().reason,
            "a multiprocessor has shared memory for one thread block of both, and for several of each");
}

// Only what waits for itself is slower: a product that takes most of the shared memory keeps its epilogue.
TEST(GpuKernels, KeepEpiloguesWithTheirProducts) {
  for (std::string_view gpu : gpu_names())
    EXPECT_EQ(count_kernels(R"(graph g(%x: f32[2048,2048], %w: f32[2048,2048], %b: f32[2048]) {
      %0 = matmul(%x, %w)
      %1 = add(%0, %b)
      %2 = relu(%1)
      return %2
    })",
                            gpu),
              1U);
}

// --- launches ---

// The rows of a softmax stay in one kernel, though it leaves half of the multiprocessors without work: six
// launches more and reading the rows again would take longer.
TEST(GpuKernels, KeepASoftmaxOfFewRowsTogether) {
  EXPECT_EQ(count_kernels("graph g(%x: f32[64,20000]) { %0 = softmax(%x, axis=-1) return %0 }"), 1U);
}

TEST(GpuKernels, SplitASoftmaxOfVeryFewRows) {
  EXPECT_GT(count_kernels("graph g(%x: f32[2,200000]) { %0 = softmax(%x, axis=-1) return %0 }"), 1U);
}

TEST(GpuKernels, SplitReductionsWhereThatIsWorthALaunch) {
  EXPECT_EQ(count_kernels("graph g(%x: f32[1000000]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"), 2U);
  EXPECT_EQ(count_kernels("graph g(%x: f32[9000]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"), 1U);
  EXPECT_EQ(count_kernels("graph g(%x: f32[200,9000]) { %0 = reduce_sum(%x, axes=[1]) return %0 }"), 1U);
  EXPECT_EQ(count_kernels("graph g(%x: f32[4,90000]) { %0 = reduce_sum(%x, axes=[1]) return %0 }"), 2U);
}

TEST(GpuKernels, SplitColumnsWhereThatIsWorthALaunch) {
  EXPECT_EQ(count_kernels("graph g(%x: f32[20000,70]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"), 2U);
  EXPECT_EQ(count_kernels("graph g(%x: f32[200,70]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"), 1U);
  EXPECT_EQ(count_kernels("graph g(%x: f32[20000,70000]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"), 1U);
}

}  // namespace
}  // namespace tenon
