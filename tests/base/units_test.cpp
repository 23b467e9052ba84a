#include "base/units.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Units, OfBytes) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(9'999), "9999 B");
  EXPECT_EQ(format_bytes(10'000), "9.8 KiB");
  EXPECT_EQ(format_bytes(1023.94 * 1024), "1023.9 KiB");
  EXPECT_EQ(format_bytes(1023.97 * 1024), "1.0 MiB");
  EXPECT_EQ(format_bytes(1024.0 * 1024), "1.0 MiB");
  EXPECT_EQ(format_bytes(1.5 * 1024 * 1024 * 1024), "1.5 GiB");
  EXPECT_EQ(format_bytes(4096.0 * 1024 * 1024 * 1024), "4096.0 GiB");
}

TEST(Units, OfTime) {
  EXPECT_EQ(format_seconds(0), "0.00 ns");
  EXPECT_EQ(format_seconds(8.12e-7), "812 ns");
  EXPECT_EQ(format_seconds(1.43e-5), "14.3 µs");
  EXPECT_EQ(format_seconds(9.9999e-4), "1.00 ms");
  EXPECT_EQ(format_seconds(0.00207), "2.07 ms");
  EXPECT_EQ(format_seconds(1.5), "1.50 s");
  EXPECT_EQ(format_seconds(75), "75.0 s");
  EXPECT_EQ(format_seconds(750), "12 min 30 s");
}

TEST(Units, OfThings) {
  EXPECT_EQ(format_count(0, "kernel"), "0 kernels");
  EXPECT_EQ(format_count(1, "kernel"), "1 kernel");
  EXPECT_EQ(format_count(2, "kernel"), "2 kernels");
}

}  // namespace
}  // namespace tenon
