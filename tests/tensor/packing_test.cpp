#include "tensor/packing.h"

#include <gtest/gtest.h>

#include "base/expect_error.h"
#include "tensor/wide.h"

namespace tenon {
namespace {

std::vector<std::byte> as_bytes(std::initializer_list<unsigned> values) {
  std::vector<std::byte> bytes;
  for (const unsigned value : values)
    bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(Packing, SizesRoundUpToBytes) {
  EXPECT_EQ(packed_size(DType::U4, 0), 0u);
  EXPECT_EQ(packed_size(DType::I4, 5), 3u);
  EXPECT_EQ(packed_size(DType::U2, 5), 2u);
  EXPECT_EQ(packed_size(DType::F4E2M1, 4), 2u);
  EXPECT_EQ(packed_size(DType::Bool, 5), 5u);
  EXPECT_EQ(packed_size(DType::C128, 2), 32u);
  EXPECT_EQ(packed_size(DType::U2, INT64_MAX), uint64_t{1} << 61);
  expect_error<UserError>([] { packed_size(DType::F64, INT64_MAX); },
                          "9223372036854775807 elements of f64 take more bytes than can be counted");
}

TEST(Packing, LowBitsComeFirst) {
  const auto nibbles = as_bytes({0x21, 0x8f});
  EXPECT_EQ(widen<int64_t>(unpack(DType::U4, {4}, nibbles)), (std::vector<int64_t>{1, 2, 15, 8}));
  EXPECT_EQ(widen<int64_t>(unpack(DType::I4, {4}, nibbles)), (std::vector<int64_t>{1, 2, -1, -8}));
  EXPECT_EQ(widen<double>(unpack(DType::F4E2M1, {4}, nibbles)), (std::vector<double>{0.5, 1, -6, -0.0}));
  const auto pairs = as_bytes({0b11'10'01'00, 0b01});
  EXPECT_EQ(widen<int64_t>(unpack(DType::U2, {5}, pairs)), (std::vector<int64_t>{0, 1, 2, 3, 1}));
  EXPECT_EQ(widen<int64_t>(unpack(DType::I2, {5}, pairs)), (std::vector<int64_t>{0, 1, -2, -1, 1}));
}

TEST(Packing, PaddingIsIgnoredAndWrittenAsZero) {
  const Tensor t = unpack(DType::I4, {3}, as_bytes({0x21, 0xf3}));
  EXPECT_EQ(widen<int64_t>(t), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(pack(t), as_bytes({0x21, 0x03}));
}

TEST(Packing, EveryByteRoundTrips) {
  std::vector<std::byte> bytes;
  for (unsigned value = 0; value < 256; ++value)
    bytes.push_back(static_cast<std::byte>(value));
  for (const DType dtype : {DType::I4, DType::U4, DType::F4E2M1})
    EXPECT_EQ(pack(unpack(dtype, {512}, bytes)), bytes) << name(dtype);
  for (const DType dtype : {DType::I2, DType::U2})
    EXPECT_EQ(pack(unpack(dtype, {1024}, bytes)), bytes) << name(dtype);
  for (const DType dtype : {DType::F64, DType::C128, DType::BF16, DType::U8})
    EXPECT_EQ(pack(unpack(dtype, {256 / info(dtype).bytes}, bytes)), bytes) << name(dtype);
}

TEST(Packing, ABoolIsZeroOrOne) {
  EXPECT_EQ(pack(unpack(DType::Bool, {3}, as_bytes({0, 1, 2}))), as_bytes({0, 1, 1}));
}

TEST(Packing, WantsJustTheRightSize) {
  EXPECT_THROW(unpack(DType::U4, {3}, as_bytes({1})), InternalError);
  EXPECT_THROW(unpack(DType::F32, {1}, as_bytes({1, 2, 3})), InternalError);
  EXPECT_EQ(unpack(DType::F32, {0}, {}).count(), 0);
}

}  // namespace
}  // namespace tenon
