// Contractions in tiles of thread blocks, interpreted, against the nest that nobody scheduled.
#include "schedule/cuda/tiled_contraction.h"

#include "schedule/cuda/contraction_tiles.h"
#include "schedule/cuda/one_kernel.h"

namespace tenon {
namespace {

using loops::Kernel;

using Contraction = OneKernel;

bool has_tiles(const Kernel& kernel) { return print(kernel).find("in shared") != std::string::npos; }

void expect_same(const Contraction& contraction, const Sizes& sizes = {}, double tolerance = 1e-5) {
  const Kernel scheduled = contraction.scheduled();
  EXPECT_TRUE(has_tiles(scheduled)) << print(scheduled);
  expect_same_elements(contraction, sizes, tolerance);
}

TEST(TiledContraction, MatmulOfWholeTiles) {
  expect_same(Contraction("graph g(%a: f32[32,32], %b: f32[32,64]) { %0 = matmul(%a, %b) return %0 }"));
}

TEST(TiledContraction, MatmulOfOddSizes) {
  expect_same(Contraction("graph g(%a: f32[19,37], %b: f32[37,71]) { %0 = matmul(%a, %b) return %0 }"));
  expect_same(Contraction("graph g(%a: f32[35,18], %b: f32[18,10]) { %0 = matmul(%a, %b) return %0 }"));
}

TEST(TiledContraction, TransposedOperands) {
  expect_same(Contraction(R"(graph g(%a: f32[24,36], %b: f32[40,24]) {
    %0 = transpose(%a, permutation=[1,0])
    %1 = transpose(%b, permutation=[1,0])
    %2 = matmul(%0, %1)
    return %2
  })"));
}

TEST(TiledContraction, Batches) {
  expect_same(Contraction(R"(graph g(%a: f32[2,3,17,20], %b: f32[2,3,20,16]) {
    %0 = matmul(%a, %b)
    return %0
  })"));
  expect_same(Contraction("graph g(%a: f32[3,5,20], %b: f32[20,16]) { %0 = matmul(%a, %b) return %0 }"));
}

TEST(TiledContraction, HeadsOfAttention) {
  expect_same(Contraction(R"(graph g(%q: f32[2,16,3,8], %k: f32[2,18,3,8]) {
    %0 = transpose(%q, permutation=[0,2,1,3])
    %1 = transpose(%k, permutation=[0,2,3,1])
    %2 = matmul(%0, %1)
    return %2
  })"));
}

TEST(TiledContraction, LargestTiles) {
  const Contraction contraction("graph g(%a: f32[127,17], %b: f32[17,126]) { %0 = matmul(%a, %b) return %0 }",
                                1);
  EXPECT_NE(print(contraction.scheduled()).find("block(256)"), std::string::npos);
  expect_same(contraction);
}

TEST(TiledContraction, Convolutions) {
  expect_same(Contraction(R"(graph g(%x: f32[2,5,7,6], %w: f32[9,5,3,3]) {
    %0 = conv(%x, %w, pads=[1,1,1,1])
    return %0
  })"));
  expect_same(Contraction(R"(graph g(%x: f32[1,4,9,11], %w: f32[12,4,3,2]) {
    %0 = conv(%x, %w, strides=[2,3], pads=[0,1,2,1])
    return %0
  })"));
}

TEST(TiledContraction, Epilogues) {
  expect_same(Contraction(R"(graph g(%a: f32[18,20], %b: f32[20,24], %c: f32[24]) {
    %0 = matmul(%a, %b)
    %1 = add(%0, %c)
    %2 = relu(%1)
    return %2
  })"));
  expect_same(Contraction(R"(graph g(%a: f32[18,20], %b: f32[20,23], %c: f32[18,23]) {
    %0 = matmul(%a, %b)
    %1 = add(%0, %c)
    %2 = tanh(%1)
    return %0, %2
  })"));
}

TEST(TiledContraction, DynamicSizes) {
  const Contraction contraction(R"(graph g(%a: f32[b,m,k], %b: f32[b,k,n], %c: f32[n]) {
    %0 = matmul(%a, %b)
    %1 = add(%0, %c)
    return %1
  })");
  expect_same(contraction, {{"b", 2}, {"m", 5}, {"n", 9}, {"k", 35}});
  expect_same(contraction, {{"b", 1}, {"m", 1}, {"n", 1}, {"k", 1}});
  expect_same(contraction, {{"b", 1}, {"m", 2}, {"n", 2}, {"k", 0}});
}

// Fusion takes sums along contiguous memory for rows where it does not know how many there are.
TEST(TiledContraction, RowsThatAreProducts) {
  const Contraction contraction(R"(graph g(%x: f32[n,20], %w: f32[24,20], %c: f32[24]) {
    %0 = transpose(%w, permutation=[1,0])
    %1 = matmul(%x, %0)
    %2 = add(%1, %c)
    return %2
  })");
  EXPECT_EQ(contraction.group.pattern, lowering::Pattern::Rows);
  expect_same(contraction, {{"n", 5}});
}

TEST(TiledContraction, HalfPrecision) {
  expect_same(Contraction("graph g(%a: f16[18,20], %b: f16[20,24]) { %0 = matmul(%a, %b) return %0 }"), {},
              1e-2);
}

TEST(TiledContraction, NothingToShare) {
  for (const std::string_view text :
       {"graph g(%a: f32[8,64]) { %0 = reduce_sum(%a, axes=[0]) return %0 }",
        "graph g(%a: f64[40,40], %b: f64[40,64]) { %0 = matmul(%a, %b) return %0 }",
        "graph g(%x: f32[1,16,9,9], %w: f32[16,1,3,3]) { %0 = conv(%x, %w, groups=16) return %0 }"})
    EXPECT_FALSE(has_tiles(Contraction(text).scheduled())) << text;
}

// "m x n" of the only contraction, for so many multiprocessors.
std::string tile_of(std::string_view text, int multiprocessors = 132) {
  const Contraction contraction(text, multiprocessors);
  const auto product = schedule::cuda::match_matrix_product(contraction.stages.front().definition,
                                                            contraction.unscheduled().inputs);
  if (!product)
    return "none";
  const schedule::cuda::ContractionTile tile = schedule::cuda::choose_tile(*product, *contraction.target.gpu);
  return fmt::format("{} x {}", tile.m, tile.n);
}

TEST(TiledContraction, TilesThatKeepMultiprocessorsBusy) {
  const auto matmul = [](int64_t m, int64_t n) {
    return tile_of(
        fmt::format("graph g(%a: f32[{},256], %b: f32[256,{}]) {{ %0 = matmul(%a, %b) return %0 }}", m, n));
  };
  EXPECT_EQ(matmul(4096, 4096), "128 x 128");
  EXPECT_EQ(matmul(1024, 1024), "128 x 64");
  EXPECT_EQ(matmul(512, 512), "32 x 64");
  EXPECT_EQ(matmul(256, 256), "32 x 32");
  EXPECT_EQ(matmul(16, 16384), "16 x 64");
}

}  // namespace
}  // namespace tenon
