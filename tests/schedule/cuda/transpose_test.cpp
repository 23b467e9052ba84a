// Transposes through square tiles in shared memory, interpreted, against the nest that nobody scheduled.
#include "schedule/cuda/one_kernel.h"

namespace tenon {
namespace {

bool has_tiles(const OneKernel& one) { return print(one.scheduled()).find("tile0: ") != std::string::npos; }

void expect_same(const OneKernel& one, const Sizes& sizes = {}) {
  EXPECT_TRUE(has_tiles(one)) << print(one.scheduled());
  expect_same_elements(one, sizes);
}

TEST(TransposeTiles, WholeTiles) {
  expect_same(OneKernel("graph g(%x: f32[64,96]) { %0 = transpose(%x, permutation=[1,0]) return %0 }"));
}

TEST(TransposeTiles, OddSizes) {
  expect_same(OneKernel("graph g(%x: f32[33,47]) { %0 = transpose(%x, permutation=[1,0]) return %0 }"));
}

TEST(TransposeTiles, AnySizes) {
  const OneKernel one("graph g(%x: f32[n,m]) { %0 = transpose(%x, permutation=[1,0]) return %0 }");
  for (const int64_t rows : {1, 31, 40})
    expect_same(one, {{"n", rows}, {"m", 35}});
}

TEST(TransposeTiles, InBatches) {
  expect_same(OneKernel("graph g(%x: f32[3,20,40]) { %0 = transpose(%x, permutation=[0,2,1]) return %0 }"));
  expect_same(OneKernel("graph g(%x: f32[20,3,40]) { %0 = transpose(%x, permutation=[2,1,0]) return %0 }"));
}

TEST(TransposeTiles, WithWhatIsReadAlong) {
  expect_same(OneKernel(R"(graph g(%x: f32[40,50], %y: f32[50,40], %z: f16[40,50]) {
    %0 = transpose(%x, permutation=[1,0])
    %1 = add(%0, %y)
    %2 = transpose(%z, permutation=[1,0])
    %3 = cast(%2, to=f32)
    %4 = mul(%1, %3)
    return %4
  })"));
}

TEST(TransposeTiles, AreNotForShortAxes) {
  EXPECT_FALSE(
      has_tiles(OneKernel("graph g(%x: f32[8,500]) { %0 = transpose(%x, permutation=[1,0]) return %0 }")));
  EXPECT_FALSE(
      has_tiles(OneKernel("graph g(%x: f32[500,8]) { %0 = transpose(%x, permutation=[1,0]) return %0 }")));
}

TEST(TransposeTiles, AreNotForWhatIsReadAsItIsWritten) {
  EXPECT_FALSE(has_tiles(OneKernel("graph g(%x: f32[64,64]) { %0 = relu(%x) return %0 }")));
  EXPECT_FALSE(has_tiles(
      OneKernel("graph g(%x: f32[20,30,64]) { %0 = transpose(%x, permutation=[1,0,2]) return %0 }")));
}

}  // namespace
}  // namespace tenon
