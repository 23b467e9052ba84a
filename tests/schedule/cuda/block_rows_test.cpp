// Rows by thread blocks and by clusters of them: which, and what they compute.
#include "schedule/cuda/block_rows.h"

#include "schedule/cuda/one_kernel.h"

namespace tenon {
namespace {

std::string softmax_of(const std::string& type) {
  return fmt::format(
      "graph g(%x: {}) {{ %0 = reduce_max(%x, axes=[1], keep_dims=true) %1 = sub(%x, %0) %2 = exp(%1) "
      "%3 = reduce_sum(%2, axes=[1], keep_dims=true) %4 = div(%2, %3) return %4 }}",
      type);
}

bool has_blocks_of(int threads, const OneKernel& one) {
  return print(one.scheduled()).find(fmt::format("block({})", threads)) != std::string::npos;
}

TEST(BlockRows, TakeAClusterWhereOneBlockHasTooFewRegisters) {
  EXPECT_TRUE(has_blocks_of(512, OneKernel(softmax_of("f32[64,16384]"))));
  EXPECT_TRUE(has_blocks_of(1024, OneKernel(softmax_of("f32[64,32768]"))));
  EXPECT_TRUE(has_blocks_of(2048, OneKernel(softmax_of("f32[64,32769]"))));
  EXPECT_TRUE(has_blocks_of(2048, OneKernel(softmax_of("f32[64,65536]"))));
  EXPECT_TRUE(has_blocks_of(4096, OneKernel(softmax_of("f32[64,262144]"))));
}

TEST(BlockRows, ComputeTheSameInAClusterAsWithout) {
  expect_same_elements(OneKernel(softmax_of("f32[8,32771]")));
}

// An older GPU has no clusters: such a row would not stay in a thread block.
TEST(BlockRows, TakeNoClusterWhereThereAreNone) {
  EXPECT_TRUE(schedule::cuda::fits_cluster(65536, gpu_named("sm_90")));
  EXPECT_FALSE(schedule::cuda::fits_cluster(65536, gpu_named("sm_80")));
  EXPECT_FALSE(schedule::cuda::fits_cluster(262145, gpu_named("sm_90")));
  EXPECT_FALSE(schedule::cuda::fits_cluster(32768, gpu_named("sm_90")));
}

}  // namespace
}  // namespace tenon
