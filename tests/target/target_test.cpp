#include "target/target.h"

#include <gtest/gtest.h>

#include "target/resources.h"

namespace tenon {
namespace {

TEST(Target, IsDescribedInOneLine) {
  Target target{.architecture = Architecture::Arm64,
                .cpu = "generic",
                .features = {"+neon", "+bf16"},
                .vector_bytes = 16,
                .vector_registers = 32,
                .fused_multiply_add = true,
                .caches = {64 << 10, 1 << 20, 3 << 19},
                .cores = 4};
  EXPECT_EQ(
      describe(target),
      "arm64 generic +neon +bf16, 32 vectors of 16 bytes with fused multiply-add, caches of 64, 1024 and "
      "1536 KiB, 4 cores");
  target = {.cpu = "x86-64", .features = {"+sse2"}, .caches = {32 << 10, 256 << 10, 0}};
  EXPECT_EQ(describe(target), "x86-64 +sse2, 16 vectors of 16 bytes, caches of 32, 256 and 0 KiB, 1 core");
  target.gpu = gpu_named("sm_90");
  EXPECT_EQ(
      describe(target),
      "sm_90 (sm_90), 132 multiprocessors of 2048 threads, 65536 registers and 228 KiB of shared memory, "
      "227 KiB for a block, second-level cache of 51200 KiB, 4800 GB/s, beside x86-64 +sse2, 16 vectors "
      "of 16 bytes, caches of 32, 256 and 0 KiB, 1 core");
}

// Data sheets give 19.5, 91.6 and 66.9 TFLOP/s.
TEST(Gpus, ComputeSoMuchAtMost) {
  EXPECT_NEAR(peak_flops(gpu_named("sm_80")), 19.5e12, 1e11);
  EXPECT_NEAR(peak_flops(gpu_named("sm_89")), 91.6e12, 1e11);
  EXPECT_NEAR(peak_flops(gpu_named("sm_90")), 66.9e12, 1e11);
}

TEST(Gpus, RunAsManyBlocksAsAMultiprocessorHasRoomFor) {
  const Gpu gpu = gpu_named("sm_90");
  EXPECT_EQ(blocks_per_multiprocessor(gpu, 256, 0), 8);
  EXPECT_EQ(blocks_per_multiprocessor(gpu, 32, 0), 32);
  EXPECT_EQ(blocks_per_multiprocessor(gpu, 33, 0), 32);
  EXPECT_EQ(blocks_per_multiprocessor(gpu, 1024, 113 << 10), 2);
  EXPECT_EQ(blocks_per_multiprocessor(gpu, 1024, 114 << 10), 1);
  EXPECT_EQ(blocks_per_multiprocessor(gpu, 32, 227 << 10), 1);
  EXPECT_EQ(blocks_per_multiprocessor(gpu, 32, 228 << 10), 0);
  EXPECT_EQ(blocks_per_multiprocessor(gpu, 256, 0, 64), 4);
  EXPECT_EQ(blocks_per_multiprocessor(gpu, 256, 0, 65), 3);
}

TEST(Target, OfThisMachineHoldsTogether) {
  const Target& target = this_machine();
  EXPECT_EQ(&target, &this_machine());
  EXPECT_FALSE(target.features.empty());
  EXPECT_TRUE(target.vector_bytes == 16 || target.vector_bytes == 32 || target.vector_bytes == 64);
  EXPECT_GT(target.caches.level1_data, 0);
  EXPECT_GE(target.caches.level2, target.caches.level1_data);
  EXPECT_GE(target.cores, 1);
  EXPECT_LE(target.cores, std::ssize(allowed_processors()));
}

// What the compiler that built this test may use is there, or the test would not run.
TEST(Target, OfThisMachineHasItsArchitecture) {
#if defined(__x86_64__)
  EXPECT_EQ(this_machine().architecture, Architecture::X86_64);
  EXPECT_EQ(this_machine().features.front(), "+sse2");
#else
  EXPECT_EQ(this_machine().architecture, Architecture::Arm64);
  EXPECT_EQ(this_machine().features.front(), "+fp-armv8");
#endif
}

}  // namespace
}  // namespace tenon
