// Fused attention with online softmax, interpreted, against the stages that nobody scheduled.
#include "schedule/cuda/attention_kernel.h"

namespace tenon {
namespace {

using fusion::AttentionTile;
using loops::Kernel;

void expect_close(const Kernel& scheduled, const Kernel& unscheduled, const Sizes& sizes, double tolerance) {
  EXPECT_EQ(loops::check(scheduled), std::vector<std::string>{});
  const std::vector<Tensor> inputs = random_inputs(scheduled, sizes);
  const std::vector<Tensor> got = loops::interpret(scheduled, inputs, sizes),
                            wanted = loops::interpret(unscheduled, inputs, sizes);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].extents(), wanted[i].extents());
    const std::vector<double> ours = widen<double>(got[i]), theirs = widen<double>(wanted[i]);
    for (size_t j = 0; j < ours.size(); ++j) {
      if (std::isnan(theirs[j]))
        ASSERT_TRUE(std::isnan(ours[j])) << "element " << j << "\n" << print(scheduled);
      else
        ASSERT_NEAR(ours[j], theirs[j], tolerance) << "element " << j << "\n" << print(scheduled);
    }
  }
}

// In the tiles that are chosen for it, and in these.
void expect_same(const Attention& attention, const Sizes& sizes = {}, double tolerance = 1e-5,
                 const std::vector<AttentionTile>& tiles = {}) {
  ASSERT_TRUE(attention.is_fused()) << attention.obstacle();
  const Kernel unscheduled = attention.unscheduled();
  expect_close(attention.scheduled(), unscheduled, sizes, tolerance);
  for (const AttentionTile& tile : tiles)
    expect_close(attention.in_tiles(tile), unscheduled, sizes, tolerance);
}

const AttentionTile kNarrow{.on_tensor_cores = false, .warps = 2, .thread_rows = 2, .keys = 32},
    kWide{.on_tensor_cores = false, .warps = 2, .thread_rows = 4, .keys = 64},
    kTwoWarps{.on_tensor_cores = true, .warps = 2, .thread_rows = 2, .keys = 32},
    kCopied{.on_tensor_cores = true, .warps = 2, .thread_rows = 1, .keys = 32, .stages = 2},
    kWarpgroup{.on_tensor_cores = true, .warps = 4, .keys = 64, .stages = 2, .by_warpgroups = true};

TEST(FusedAttentionOnGpu, WholeTiles) {
  expect_same(Attention(attention_of("f32", 2, 16, 32, 8)), {}, 1e-5, {kNarrow});
}

TEST(FusedAttentionOnGpu, OddLengths) {
  expect_same(Attention(attention_of("f32", 2, 9, 37, 12)), {}, 1e-5, {kNarrow, kWide});
}

TEST(FusedAttentionOnGpu, HeadSizes) {
  for (const int64_t size : {32, 64, 80, 128})
    expect_same(Attention(attention_of("f32", 1, 8, 17, size)));
}

TEST(FusedAttentionOnGpu, HalfPrecision) {
  for (const std::string_view dtype : {"f16", "bf16"})
    expect_same(Attention(attention_of(dtype, 1, 18, 40, 20)), {}, dtype == "f16" ? 3e-3 : 2e-2);
  expect_same(Attention(attention_of("f16", 1, 10, 35, 40)), {}, 3e-3, {kTwoWarps, kCopied});
}

TEST(FusedAttentionOnGpu, ByWarpgroups) {
  expect_same(Attention(attention_of("f16", 1, 10, 40, 64)), {}, 3e-3, {kWarpgroup});
}

}  // namespace
}  // namespace tenon
