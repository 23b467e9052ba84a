#include "target/named_targets.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace tenon {
namespace {

TEST(NamedTargets, SayWhatSchedulesDependOn) {
  const Target avx2 = target_named("avx2"), avx512 = target_named("avx512"), amx = target_named("amx"),
               neon = target_named("neon"), i8mm = target_named("neon-i8mm");
  EXPECT_EQ(describe(avx2),
            "x86-64-v3 +sse2 +sse3 +ssse3 +sse4.1 +sse4.2 +popcnt +lzcnt +movbe +bmi +bmi2 +avx +f16c +fma "
            "+avx2, 16 vectors of 32 bytes with fused multiply-add, caches of 32, 512 and 2048 KiB, 2 cores");
  EXPECT_EQ(describe(neon),
            "arm64 generic +fp-armv8 +neon +lse +rdm +fullfp16 +dotprod, 32 vectors of 16 bytes with fused "
            "multiply-add, caches of 64, 1024 and 1024 KiB, 2 cores");
  EXPECT_FALSE(avx2.has_int8_dot_products());
  EXPECT_EQ(avx512.cpu, "x86-64-v4");
  EXPECT_EQ(avx512.vector_bytes, 64);
  EXPECT_TRUE(avx512.has_int8_dot_products());
  EXPECT_FALSE(avx512.matrix_tiles);
  EXPECT_TRUE(amx.matrix_tiles);
  EXPECT_FALSE(neon.has_int8_dot_products());
  EXPECT_TRUE(i8mm.multiplies_matrices(true) && i8mm.multiplies_matrices(false));
}

TEST(NamedTargets, AreListedWhereANameIsNotThere) {
  try {
    target_named("avx1024");
    FAIL() << "it was found";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "there is no target 'avx1024'; there are avx2, avx512, amx, neon, neon-i8mm");
  }
}

}  // namespace
}  // namespace tenon
