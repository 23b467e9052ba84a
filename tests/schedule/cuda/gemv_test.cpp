// Products with few rows, interpreted, against the nest that nobody scheduled.
#include "schedule/cuda/gemv.h"

#include "schedule/cuda/one_kernel.h"

namespace tenon {
namespace {

bool is_gemv(const OneKernel& one) {
  return schedule::cuda::is_gemv(one.stages.front().definition, one.unscheduled().inputs);
}

void expect_same(std::string_view text, const Sizes& sizes = {}, double tolerance = 1e-5) {
  for (const int multiprocessors : {1, 132}) {  // whole blocks for few columns, or small ones
    const OneKernel one(text, multiprocessors);
    EXPECT_TRUE(is_gemv(one)) << text;
    expect_same_elements(one, sizes, tolerance);
  }
}

TEST(Gemv, WeightsByRows) {
  expect_same("graph g(%x: f32[1,200], %w: f32[200,128]) { %0 = matmul(%x, %w) return %0 }");
  expect_same("graph g(%x: f32[5,64], %w: f32[64,72]) { %0 = matmul(%x, %w) return %0 }");
  expect_same("graph g(%x: f32[16,40], %w: f32[40,68]) { %0 = matmul(%x, %w) return %0 }");
}

TEST(Gemv, WeightsByColumns) {
  for (const auto& [m, n, k] : {std::array{1, 64, 512}, {3, 66, 96}, {16, 65, 64}})
    expect_same(fmt::format(R"(graph g(%x: f32[{},{}], %w: f32[{},{}]) {{
      %0 = transpose(%w, permutation=[1,0])
      %1 = matmul(%x, %0)
      return %1
    }})",
                            m, k, n, k));
}

TEST(Gemv, OddSizes) {
  expect_same("graph g(%x: f32[3,37], %w: f32[37,71]) { %0 = matmul(%x, %w) return %0 }");
  expect_same(R"(graph g(%x: f32[2,101], %w: f32[67,101]) {
    %0 = transpose(%w, permutation=[1,0])
    %1 = matmul(%x, %0)
    return %1
  })");
}

TEST(Gemv, FewColumns) {
  expect_same("graph g(%x: f32[80,96], %w: f32[96,3]) { %0 = matmul(%x, %w) return %0 }");
}

TEST(Gemv, HalfPrecision) {
  for (const std::string_view dtype : {"f16", "bf16"}) {
    expect_same(
        fmt::format("graph g(%x: {0}[2,64], %w: {0}[64,72]) {{ %0 = matmul(%x, %w) return %0 }}", dtype), {},
        0.1);
    expect_same(fmt::format(R"(graph g(%x: {0}[2,64], %w: {0}[72,64]) {{
      %0 = transpose(%w, permutation=[1,0])
      %1 = matmul(%x, %0)
      return %1
    }})",
                            dtype),
                {}, 0.1);
  }
}

TEST(Gemv, Epilogues) {
  expect_same(R"(graph g(%x: f32[2,40], %w: f32[40,72], %b: f32[72], %c: f32[2,72]) {
    %0 = matmul(%x, %w)
    %1 = add(%0, %b)
    %2 = tanh(%1)
    %3 = add(%2, %c)
    return %0, %3
  })");
}

TEST(Gemv, Batches) {
  expect_same(R"(graph g(%q: f32[2,3,1,32], %k: f32[2,3,24,32]) {
    %0 = transpose(%k, permutation=[0,1,3,2])
    %1 = matmul(%q, %0)
    return %1
  })");
  expect_same("graph g(%p: f32[4,1,40], %v: f32[4,40,16]) { %0 = matmul(%p, %v) return %0 }");
}

TEST(Gemv, DynamicSizes) {
  const std::string_view text = "graph g(%x: f32[2,k], %w: f32[k,n]) { %0 = matmul(%x, %w) return %0 }";
  expect_same(text, {{"k", 70}, {"n", 9}});
  expect_same(text, {{"k", 0}, {"n", 3}});
  expect_same(R"(graph g(%x: f32[2,k], %w: f32[72,k]) {
    %0 = transpose(%w, permutation=[1,0])
    %1 = matmul(%x, %0)
    return %1
  })",
              {{"k", 141}});
}

// A convolution of an image of one pixel, as in squeeze and excitation.
TEST(Gemv, ConvolutionOfOnePixel) {
  expect_same(R"(graph g(%x: f32[1,48,1,1], %w: f32[96,48,1,1], %b: f32[96,1,1]) {
    %0 = conv(%x, %w)
    %2 = add(%0, %b)
    %1 = relu(%2)
    return %1
  })");
}

// How blocks are shared out: "128 blocks of 512".
std::string blocks_of(std::string_view text) {
  const loops::Kernel kernel = OneKernel(text).scheduled();
  int64_t blocks = 1, threads = 0;
  for (const std::vector<loops::Statement>* body = &kernel.body; body != nullptr && !body->empty();) {
    const auto* loop = std::get_if<loops::Loop>(&body->front());
    if (loop == nullptr || loop->mark != loops::Mark::Block)
      break;
    blocks *= *loop->end.constant();
    threads = std::max(threads, loop->threads);
    body = &loop->body;
  }
  return fmt::format("{} blocks of {}", blocks, threads);
}

TEST(Gemv, SharesOutSumsWhereThereAreFewColumns) {
  const auto by_rows = [](int64_t n, int64_t k) {
    return blocks_of(
        fmt::format("graph g(%x: f32[1,{1}], %w: f32[{1},{0}]) {{ %0 = matmul(%x, %w) return %0 }}", n, k));
  };
  EXPECT_EQ(by_rows(32000, 4096), "250 blocks of 512");
  EXPECT_EQ(by_rows(4096, 4096), "128 blocks of 512");
  EXPECT_EQ(by_rows(768, 3072), "96 blocks of 512");
  EXPECT_EQ(by_rows(64, 64), "8 blocks of 32");
  const auto by_columns = [](int64_t n, int64_t k) {
    return blocks_of(fmt::format(R"(graph g(%x: f32[1,{1}], %w: f32[{0},{1}]) {{
      %0 = transpose(%w, permutation=[1,0])
      %1 = matmul(%x, %0)
      return %1
    }})",
                                 n, k));
  };
  EXPECT_EQ(by_columns(32000, 4096), "16000 blocks of 32");
  EXPECT_EQ(by_columns(4096, 4096), "2048 blocks of 64");
  EXPECT_EQ(by_columns(1000, 2048), "1000 blocks of 128");
  EXPECT_EQ(by_columns(64, 64), "64 blocks of 16");
  EXPECT_EQ(by_columns(64, 65536), "64 blocks of 512");
}

TEST(Gemv, Declined) {
  for (const std::string_view text :
       {"graph g(%a: f32[17,40], %b: f32[40,64]) { %0 = matmul(%a, %b) return %0 }",     // many rows
        "graph g(%a: f32[1,4100], %b: f32[4100,40]) { %0 = matmul(%a, %b) return %0 }",  // few long sums
        "graph g(%a: f32[1,16], %b: f32[16,640]) { %0 = matmul(%a, %b) return %0 }",     // short sums
        "graph g(%x: f32[1,32,12,12], %w: f32[8,32,3,3]) { %0 = conv(%x, %w, pads=[1,1,1,1]) return %0 }",
        "graph g(%a: f64[1,40], %b: f64[40,640]) { %0 = matmul(%a, %b) return %0 }",
        "graph g(%a: f32[64,64]) { %0 = reduce_sum(%a, axes=[0]) return %0 }"})
    EXPECT_FALSE(is_gemv(OneKernel(text))) << text;
}

}  // namespace
}  // namespace tenon
