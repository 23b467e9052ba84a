// Sums of columns: groups of threads with rows of their own, interpreted, against the nest that nobody
// scheduled.
#include "schedule/cuda/one_kernel.h"

namespace tenon {
namespace {

bool reduces_by_groups(const OneKernel& one) {
  return print(one.scheduled()).find("parts0") != std::string::npos;
}

void expect_same(const OneKernel& one, const Sizes& sizes = {}) {
  EXPECT_TRUE(reduces_by_groups(one)) << print(one.scheduled());
  expect_same_elements(one, sizes, 1e-4);
}

TEST(ReduceColumns, WholeBlocks) {
  expect_same(OneKernel("graph g(%x: f32[128,64]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"));
}

TEST(ReduceColumns, OddSizes) {
  expect_same(OneKernel("graph g(%x: f32[133,35]) { %0 = reduce_sum(%x, axes=[0]) return %0 }"));
}

TEST(ReduceColumns, AnySizes) {
  const OneKernel one("graph g(%x: f32[n,m]) { %0 = reduce_max(%x, axes=[0]) return %0 }");
  for (const int64_t rows : {1, 7, 100})
    expect_same(one, {{"n", rows}, {"m", 33}});
}

TEST(ReduceColumns, SeveralAxes) {
  expect_same(OneKernel("graph g(%x: f32[5,19,40]) { %0 = reduce_sum(%x, axes=[0,1]) return %0 }"));
  expect_same(OneKernel("graph g(%x: f32[3,19,40]) { %0 = reduce_sum(%x, axes=[1]) return %0 }"));
}

TEST(ReduceColumns, WithWhatIsComputedOfTheSum) {
  expect_same(OneKernel(R"(graph g(%x: f32[50,40], %b: f32[40]) {
    %0 = reduce_sum(%x, axes=[0])
    %1 = add(%0, %b)
    %2 = relu(%1)
    return %2
  })"));
}

TEST(ReduceColumns, KeepAThreadForEachOfFewRows) {
  EXPECT_FALSE(
      reduces_by_groups(OneKernel("graph g(%x: f32[15,64]) { %0 = reduce_sum(%x, axes=[0]) return %0 }")));
}

TEST(ReduceColumns, AreNotForRows) {
  EXPECT_FALSE(
      reduces_by_groups(OneKernel("graph g(%x: f32[64,128]) { %0 = reduce_sum(%x, axes=[1]) return %0 }")));
}

}  // namespace
}  // namespace tenon
