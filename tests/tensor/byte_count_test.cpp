#include "tensor/byte_count.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"

namespace tenon {
namespace {

constexpr int64_t large = int64_t{1} << 30;

TEST(ByteCount, CountsWhatElementsTake) {
  EXPECT_EQ(byte_count(DType::F64, {}), 8);
  EXPECT_EQ(byte_count(DType::F16, {2, 3}), 12);
  EXPECT_EQ(byte_count(DType::C128, {large, large, 0}), 0);
  EXPECT_EQ(byte_count(DType::U8, {large, large}), large * large);
  EXPECT_EQ(byte_count(DType::String, {large, large}), 0);
}

TEST(ByteCount, RefusesMoreThanCanBeCounted) {
  expect_error<UserError>(
      [] {
        byte_count(DType::F64, {large, large});
      },
      fmt::format("f64[1073741824,1073741824] needs 8 bytes for each of 1152921504606846976 elements, but "
                  "this machine has {} bytes of memory",
                  memory_limit()));
  expect_error<UserError>(
      [] {
        byte_count(DType::String, {large, large, large});
      },
      "a tensor of shape [1073741824,1073741824,1073741824] has more elements than can be counted");
}

}  // namespace
}  // namespace tenon
