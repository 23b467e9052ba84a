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
  EXPECT_TRUE(has_blocks_of(8192, OneKernel(softmax_of("f32[64,262144]"))));
}

TEST(BlockRows, ComputeTheSameInAClusterAsWithout) {
  expect_same_elements(OneKernel(softmax_of("f32[8,32771]")));
}

std::string head_of(const std::string& graph, int multiprocessors = 132) {
  const std::string text = print(OneKernel(graph, multiprocessors).scheduled());
  const size_t begin = text.find("for ");
  return text.substr(begin, text.find(" {", begin) - begin);
}

// A row is copied to shared memory while the one before is computed, if there is another.
TEST(BlockRows, StayWhereMoreRowsComeThanRunAtOnce) {
  EXPECT_EQ(head_of(softmax_of("f32[256,65536]")), "for r0 in 0..256 block(2048) pipelined 2");
  EXPECT_EQ(head_of(softmax_of("f32[67,65536]")), "for r0 in 0..67 block(2048) pipelined 2");
  EXPECT_EQ(head_of(softmax_of("f32[66,65536]")),
            "for r0 in 0..66 block(2048)");  // two blocks a multiprocessor
  EXPECT_EQ(head_of(softmax_of("f32[66,65536]"), 64), "for r0 in 0..66 block(2048) pipelined 2");
  EXPECT_EQ(head_of(softmax_of("f32[17,262144]")), "for r0 in 0..17 block(8192) pipelined 2");
  EXPECT_EQ(head_of(softmax_of("f32[16,262144]")), "for r0 in 0..16 block(8192)");
  EXPECT_EQ(head_of(softmax_of("f32[n,65536]")), "for r0 in 0..n block(2048) pipelined 2");
  EXPECT_EQ(head_of(softmax_of("f32[4096,32768]")), "for r0 in 0..4096 block(1024)");
}

TEST(BlockRows, ComputeTheSameInClustersThatStay) {
  expect_same_elements(OneKernel(softmax_of("f32[9,32771]"), 4));
}

// The scale is the same for all rows, and stays in the cache.
TEST(BlockRows, CopyAheadWhatIsARowsOwn) {
  const std::string text = print(OneKernel("graph g(%x: f32[512,65536], %w: f32[65536]) { %0 = mul(%x, %x) "
                                           "%1 = reduce_mean(%0, axes=[1], keep_dims=true) %2 = sqrt(%1) "
                                           "%3 = div(%x, %2) %4 = mul(%3, %w) return %4 }")
                                     .scheduled());
  EXPECT_NE(text.find("copy(65536) "), std::string::npos) << text;
  EXPECT_EQ(text.find("copy("), text.rfind("copy(")) << text;
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
