#include "tensor/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tenon {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");
constexpr Overflow natural = Overflow::Natural, saturate = Overflow::Saturate;

template <FloatFormat format_>
struct Format {
  static constexpr FloatFormat format = format_;
  static constexpr uint32_t codes = 2 * format_.sign();
  static double decode(uint32_t code) { return tenon::decode<format_>(code); }
  static uint32_t encode(double value, Overflow overflow) { return tenon::encode<format_>(value, overflow); }
};

template <class F>
class EveryFloatFormat : public testing::Test {};
using Formats = testing::Types<Format<f16_format>, Format<bf16_format>, Format<f8e4m3fn_format>,
                               Format<f8e4m3fnuz_format>, Format<f8e5m2_format>, Format<f8e5m2fnuz_format>,
                               Format<f4e2m1_format>>;
TYPED_TEST_SUITE(EveryFloatFormat, Formats);

TYPED_TEST(EveryFloatFormat, EveryCodeSurvivesTheRoundTrip) {
  for (uint32_t code = 0; code < TypeParam::codes; ++code) {
    const double value = TypeParam::decode(code);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(TypeParam::decode(TypeParam::encode(value, natural)))) << code;
      EXPECT_TRUE(std::isnan(TypeParam::decode(TypeParam::encode(value, saturate)))) << code;
    } else {
      EXPECT_EQ(TypeParam::encode(value, natural), code);
      if (std::isfinite(value)) {
        EXPECT_EQ(TypeParam::encode(value, saturate), code);
      }
    }
  }
}

TYPED_TEST(EveryFloatFormat, BetweenTwoNeighboursTheNearestWinsAndTiesGoToEven) {
  for (uint32_t code = 0; code < TypeParam::format.largest; ++code) {
    const double low = TypeParam::decode(code), high = TypeParam::decode(code + 1);
    ASSERT_LT(low, high) << code;
    const double middle = (low + high) / 2;  // exact
    const uint32_t even = code % 2 == 0 ? code : code + 1;
    EXPECT_EQ(TypeParam::encode(middle, natural), even) << code;
    EXPECT_EQ(TypeParam::encode(std::nextafter(middle, low), natural), code);
    EXPECT_EQ(TypeParam::encode(std::nextafter(middle, high), natural), code + 1);
    if (even != 0 || !TypeParam::format.one_nan) {
      EXPECT_EQ(TypeParam::encode(-middle, natural), even | TypeParam::format.sign()) << code;
    }
  }
}

TYPED_TEST(EveryFloatFormat, OverflowsJustWhereTheNextNumberWouldBe) {
  const uint32_t largest = TypeParam::format.largest;
  const double top = TypeParam::decode(largest);
  const double beyond =
      top + (top - TypeParam::decode(largest - 1)) / 2;  // halfway to the number after the last
  EXPECT_EQ(TypeParam::encode(std::nextafter(beyond, 0), natural), largest);
  for (const double value : {std::nextafter(beyond, infinity), 1e300, infinity}) {
    EXPECT_EQ(TypeParam::encode(value, natural), TypeParam::format.overflow) << value;
    EXPECT_EQ(TypeParam::encode(-value, natural), TypeParam::format.overflow | TypeParam::format.sign())
        << value;
    EXPECT_EQ(TypeParam::encode(value, saturate), largest) << value;
    EXPECT_EQ(TypeParam::encode(-value, saturate), largest | TypeParam::format.sign()) << value;
  }
}

TYPED_TEST(EveryFloatFormat, WhatIsTooSmallIsZero) {
  const double smallest = TypeParam::decode(1);
  const uint32_t minus_zero = TypeParam::format.one_nan ? 0 : TypeParam::format.sign();
  for (const double value :
       {smallest / 2, smallest / 4, 1e-300, std::numeric_limits<double>::denorm_min(), 0.0}) {
    EXPECT_EQ(TypeParam::encode(value, natural), 0u) << value;
    EXPECT_EQ(TypeParam::encode(-value, natural), minus_zero) << value;
  }
  EXPECT_EQ(TypeParam::encode(std::nextafter(smallest / 2, 1), natural), 1u);
}

TEST(F16, KnownValues) {
  EXPECT_EQ(decode<f16_format>(0x3c00), 1.0);
  EXPECT_EQ(decode<f16_format>(0x7bff), 65504.0);
  EXPECT_EQ(decode<f16_format>(0x0001), 0x1p-24);
  EXPECT_EQ(decode<f16_format>(0x0400), 0x1p-14);
  EXPECT_EQ(decode<f16_format>(0xfc00), -infinity);
  EXPECT_TRUE(std::isnan(decode<f16_format>(0x7c01)));
  EXPECT_EQ(encode<f16_format>(65519.99, natural), 0x7bffu);
  EXPECT_EQ(encode<f16_format>(65520, natural), 0x7c00u);  // the tie goes to the even code: infinity
  // Through f32 this would first round down to the tie 1 + 2^-11, then to 1.
  EXPECT_EQ(encode<f16_format>(1 + 0x1p-11 + 0x1p-40, natural), 0x3c01u);
}

TEST(BF16, KnownValues) {
  EXPECT_EQ(decode<bf16_format>(0x3f80), 1.0);
  EXPECT_EQ(decode<bf16_format>(0x7f7f), 0x1.fep127);
  EXPECT_EQ(decode<bf16_format>(0x0001), 0x1p-133);
  EXPECT_EQ(encode<bf16_format>(0x1.ffp127, natural), 0x7f80u);
  EXPECT_EQ(encode<bf16_format>(-nan, natural) & 0x7fc0u, 0x7fc0u);
}

TEST(F8E4M3FN, HasNaNAndNoInfinity) {
  EXPECT_EQ(decode<f8e4m3fn_format>(0x7e), 448.0);
  EXPECT_EQ(decode<f8e4m3fn_format>(0x01), 0x1p-9);
  EXPECT_EQ(decode<f8e4m3fn_format>(0x08), 0x1p-6);
  EXPECT_TRUE(std::isnan(decode<f8e4m3fn_format>(0x7f)));
  EXPECT_TRUE(std::isnan(decode<f8e4m3fn_format>(0xff)));
  EXPECT_EQ(encode<f8e4m3fn_format>(464, natural), 0x7eu);  // halfway to 480, and 448 is even
  EXPECT_EQ(encode<f8e4m3fn_format>(465, natural), 0x7fu);
  EXPECT_EQ(encode<f8e4m3fn_format>(-infinity, natural), 0xffu);
  EXPECT_EQ(encode<f8e4m3fn_format>(infinity, saturate), 0x7eu);
  EXPECT_EQ(encode<f8e4m3fn_format>(nan, saturate), 0x7fu);
  EXPECT_EQ(encode<f8e4m3fn_format>(std::copysign(nan, -1.0), saturate), 0xffu);
}

TEST(F8E4M3FNUZ, HasOneNaNAndNoMinusZero) {
  EXPECT_EQ(decode<f8e4m3fnuz_format>(0x7f), 240.0);
  EXPECT_EQ(decode<f8e4m3fnuz_format>(0xff), -240.0);
  EXPECT_EQ(decode<f8e4m3fnuz_format>(0x01), 0x1p-10);
  EXPECT_TRUE(std::isnan(decode<f8e4m3fnuz_format>(0x80)));
  EXPECT_EQ(encode<f8e4m3fnuz_format>(-0.0, natural), 0u);
  EXPECT_EQ(encode<f8e4m3fnuz_format>(-0x1p-20, saturate), 0u);
  EXPECT_EQ(encode<f8e4m3fnuz_format>(247.9, natural), 0x7fu);
  EXPECT_EQ(encode<f8e4m3fnuz_format>(248, natural), 0x80u);
  EXPECT_EQ(encode<f8e4m3fnuz_format>(-248, saturate), 0xffu);
  EXPECT_EQ(encode<f8e4m3fnuz_format>(std::copysign(nan, -1.0), natural), 0x80u);
}

TEST(F8E5M2, IsASmallF16) {
  EXPECT_EQ(decode<f8e5m2_format>(0x7b), 57344.0);
  EXPECT_EQ(decode<f8e5m2_format>(0x7c), infinity);
  EXPECT_EQ(decode<f8e5m2_format>(0xfc), -infinity);
  for (const uint32_t code : {0x7du, 0x7eu, 0x7fu, 0xfdu, 0xffu})
    EXPECT_TRUE(std::isnan(decode<f8e5m2_format>(code))) << code;
  for (uint32_t code = 0; code < 0x7c; ++code)
    EXPECT_EQ(decode<f8e5m2_format>(code), decode<f16_format>(code << 8));
  EXPECT_EQ(encode<f8e5m2_format>(61440, natural), 0x7cu);
  EXPECT_EQ(encode<f8e5m2_format>(-infinity, saturate), 0xfbu);
}

TEST(F8E5M2FNUZ, HasOneNaNAndNoMinusZero) {
  EXPECT_EQ(decode<f8e5m2fnuz_format>(0x7f), 57344.0);
  EXPECT_EQ(decode<f8e5m2fnuz_format>(0x01), 0x1p-17);
  EXPECT_TRUE(std::isnan(decode<f8e5m2fnuz_format>(0x80)));
  EXPECT_EQ(encode<f8e5m2fnuz_format>(infinity, natural), 0x80u);
  EXPECT_EQ(encode<f8e5m2fnuz_format>(infinity, saturate), 0x7fu);
}

TEST(F4E2M1, HasOnlyNumbers) {
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint32_t code = 0; code < 8; ++code) {
    EXPECT_EQ(decode<f4e2m1_format>(code), values[code]);
    EXPECT_EQ(decode<f4e2m1_format>(code + 8), -values[code]);
  }
  EXPECT_EQ(encode<f4e2m1_format>(-infinity, natural), 0xfu);
  EXPECT_EQ(encode<f4e2m1_format>(5, natural), 0x6u);  // halfway between 4 and 6
  EXPECT_EQ(encode<f4e2m1_format>(0.25, natural), 0x0u);
  EXPECT_EQ(encode<f4e2m1_format>(nan, natural), 0x8u);
  EXPECT_EQ(encode<f4e2m1_format>(std::copysign(nan, -1.0), saturate), 0x8u);
  EXPECT_TRUE(std::signbit(decode<f4e2m1_format>(0x8)));
}

TEST(F8E8M0, EveryCodeSurvivesTheRoundTrip) {
  for (uint32_t code = 0; code < 0xff; ++code) {
    EXPECT_EQ(decode_e8m0(code), std::ldexp(1.0, static_cast<int>(code) - 127));
    for (const ScaleRounding rounding : {ScaleRounding::Up, ScaleRounding::Down, ScaleRounding::Nearest})
      EXPECT_EQ(encode_e8m0(decode_e8m0(code), natural, rounding), code);
  }
  EXPECT_TRUE(std::isnan(decode_e8m0(0xff)));
}

TEST(F8E8M0, RoundsAsAsked) {
  const double values[] = {1, 1.125, 1.499, 1.5, 1.999, 2};
  const uint32_t up[] = {127, 128, 128, 128, 128, 128};
  const uint32_t down[] = {127, 127, 127, 127, 127, 128};
  const uint32_t nearest[] = {127, 127, 127, 128, 128, 128};
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(encode_e8m0(values[i], saturate, ScaleRounding::Up), up[i]) << values[i];
    EXPECT_EQ(encode_e8m0(values[i], saturate, ScaleRounding::Down), down[i]) << values[i];
    EXPECT_EQ(encode_e8m0(values[i], saturate, ScaleRounding::Nearest), nearest[i]) << values[i];
  }
}

TEST(F8E8M0, OutOfRangeIsNaNOrTheNearestScale) {
  for (const double low : {0.0, -0.0, 1e-300, 0x1.fp-128}) {
    EXPECT_EQ(encode_e8m0(low, natural, ScaleRounding::Up), 0xffu) << low;
    EXPECT_EQ(encode_e8m0(low, saturate, ScaleRounding::Up), 0u) << low;
  }
  for (const double high : {0x1.8p127, 0x1p128, infinity}) {
    EXPECT_EQ(encode_e8m0(high, natural, ScaleRounding::Up), 0xffu) << high;
    EXPECT_EQ(encode_e8m0(high, saturate, ScaleRounding::Up), 0xfeu) << high;
  }
  EXPECT_EQ(encode_e8m0(0x1.8p127, natural, ScaleRounding::Down), 0xfeu);
  EXPECT_EQ(encode_e8m0(nan, saturate, ScaleRounding::Up), 0xffu);
  EXPECT_EQ(encode_e8m0(-1, saturate, ScaleRounding::Up), 0xffu);
}

}  // namespace
}  // namespace tenon
