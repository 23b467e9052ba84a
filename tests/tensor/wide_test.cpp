#include "tensor/wide.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>

#include "base/expect_error.h"

namespace tenon {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr int64_t i64_min = std::numeric_limits<int64_t>::min(),
                  i64_max = std::numeric_limits<int64_t>::max();
constexpr uint64_t u64_max = std::numeric_limits<uint64_t>::max();

template <class T>
Tensor narrow_all(DType dtype, const std::vector<T>& values, Overflow overflow = Overflow::Natural) {
  return narrow<T>(dtype, {static_cast<int64_t>(values.size())}, values, overflow);
}

template <class T>
std::vector<T> through(DType dtype, const std::vector<T>& values, Overflow overflow = Overflow::Natural) {
  return widen<T>(narrow_all(dtype, values, overflow));
}

TEST(Wide, SmallNumbersSurviveEveryNumericDType) {
  for (const DTypeInfo& entry : all_dtypes()) {
    if (entry.kind == DTypeKind::String || entry.kind == DTypeKind::Complex)
      continue;
    EXPECT_EQ(through<double>(entry.dtype, {1}), std::vector<double>{1}) << entry.name;
    EXPECT_EQ(through<int64_t>(entry.dtype, {1}), std::vector<int64_t>{1}) << entry.name;
    EXPECT_EQ(through<uint64_t>(entry.dtype, {1}), std::vector<uint64_t>{1}) << entry.name;
  }
}

TEST(Wide, EveryF16AndBF16BitPatternWidensAsItsFormatSays) {
  Tensor f16(DType::F16, {65536}), bf16(DType::BF16, {65536});
  for (uint32_t code = 0; code < 65536; ++code) {
    f16.mutable_data<uint16_t>()[code] = static_cast<uint16_t>(code);
    bf16.mutable_data<uint16_t>()[code] = static_cast<uint16_t>(code);
  }
  const std::vector<double> f16_values = widen<double>(f16), bf16_values = widen<double>(bf16);
  const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  for (uint32_t code = 0; code < 65536; ++code) {
    ASSERT_TRUE(same(f16_values[code], decode<f16_format>(code))) << code;
    ASSERT_TRUE(same(bf16_values[code], decode<bf16_format>(code))) << code;
  }
}

TEST(Wide, EachEightBitFloatUsesItsOwnFormat) {
  const auto first = [](DType dtype, uint8_t code) {
    return widen<double>(Tensor(dtype, {}, nullptr, std::as_bytes(std::span(&code, 1))))[0];
  };
  EXPECT_EQ(first(DType::F8E4M3FN, 0x7e), 448);
  EXPECT_EQ(first(DType::F8E4M3FNUZ, 0x7f), 240);
  EXPECT_EQ(first(DType::F8E5M2, 0x7b), 57344);
  EXPECT_EQ(first(DType::F8E5M2FNUZ, 0x7f), 57344);
  EXPECT_EQ(first(DType::F8E8M0, 0x00), 0x1p-127);
  EXPECT_EQ(first(DType::F4E2M1, 0x0f), -6);
}

TEST(Wide, FloatsReadAsIntegersAreDefinedEverywhere) {
  const Tensor t = Tensor::of<double>({1.9, -1.9, std::nan(""), infinity, -infinity, 1e19, -1e19, 0x1p63});
  EXPECT_EQ(widen<int64_t>(t), (std::vector<int64_t>{1, -1, 0, i64_max, i64_min, i64_max, i64_min, i64_max}));
  const auto wrapped = static_cast<uint64_t>(i64_min);
  EXPECT_EQ(widen<uint64_t>(t), (std::vector<uint64_t>{1, u64_max, 0, u64_max, wrapped, 10000000000000000000u,
                                                       wrapped, uint64_t{1} << 63}));
}

TEST(Wide, IntegersReadAsOthersWrap) {
  EXPECT_EQ(widen<uint64_t>(Tensor::of<int8_t>({-1})), std::vector<uint64_t>{u64_max});
  EXPECT_EQ(widen<int64_t>(Tensor::of<uint64_t>({u64_max})), std::vector<int64_t>{-1});
  EXPECT_EQ(widen<int64_t>(Tensor::of<uint8_t>({255})), std::vector<int64_t>{255});
}

TEST(Wide, AnyByteButZeroIsTrue) {
  static const std::byte bytes[] = {std::byte{0}, std::byte{1}, std::byte{7}};
  EXPECT_EQ(widen<uint64_t>(Tensor(DType::Bool, {3}, nullptr, bytes)), (std::vector<uint64_t>{0, 1, 1}));
  EXPECT_EQ(through<double>(DType::Bool, {0.0, -0.0, 0.5, std::nan("")}), (std::vector<double>{0, 0, 1, 1}));
  EXPECT_EQ(through<int64_t>(DType::Bool, {256}), std::vector<int64_t>{1});
}

TEST(Narrow, IntegersKeepTheirLowBits) {
  EXPECT_EQ(through<int64_t>(DType::I8, {200, -129, 256}), (std::vector<int64_t>{-56, 127, 0}));
  EXPECT_EQ(through<int64_t>(DType::U8, {-1, 256}), (std::vector<int64_t>{255, 0}));
  EXPECT_EQ(through<int64_t>(DType::I4, {7, 8, -9, 15}), (std::vector<int64_t>{7, -8, 7, -1}));
  EXPECT_EQ(through<int64_t>(DType::U4, {-1, 16, 18}), (std::vector<int64_t>{15, 0, 2}));
  EXPECT_EQ(through<int64_t>(DType::I2, {1, 2, 3, 4}), (std::vector<int64_t>{1, -2, -1, 0}));
  EXPECT_EQ(through<int64_t>(DType::U2, {-1, 4}), (std::vector<int64_t>{3, 0}));
  EXPECT_EQ(through<uint64_t>(DType::I64, {u64_max}), std::vector<uint64_t>{u64_max});
}

TEST(Narrow, FloatsToIntegersTruncateAndWrap) {
  EXPECT_EQ(through<double>(DType::I8, {300, -1.5, std::nan("")}), (std::vector<double>{44, -1, 0}));
  EXPECT_EQ(through<double>(DType::U8, {-1, 255.9, 256}), (std::vector<double>{255, 255, 0}));
  EXPECT_EQ(through<double>(DType::U4, {-9, 15}), (std::vector<double>{7, 15}));
  EXPECT_EQ(widen<int64_t>(narrow_all<double>(DType::I64, {infinity, -1e30})),
            (std::vector<int64_t>{i64_max, i64_min}));
  EXPECT_EQ(widen<uint64_t>(narrow_all<double>(DType::U64, {1.5e19})),
            std::vector<uint64_t>{15000000000000000000u});
}

TEST(Narrow, SaturatesToTheNearestOfTheDType) {
  const auto saturated = [](DType dtype, const std::vector<double>& values) {
    return through<double>(dtype, values, Overflow::Saturate);
  };
  EXPECT_EQ(saturated(DType::I8, {300, -300, infinity, -infinity, std::nan("")}),
            (std::vector<double>{127, -128, 127, -128, 0}));
  EXPECT_EQ(saturated(DType::U8, {300, -1, 12.7}), (std::vector<double>{255, 0, 12}));
  EXPECT_EQ(saturated(DType::I4, {100, -100}), (std::vector<double>{7, -8}));
  EXPECT_EQ(saturated(DType::U2, {100, -100}), (std::vector<double>{3, 0}));
  EXPECT_EQ(saturated(DType::U64, {-1e30}), std::vector<double>{0});
  EXPECT_EQ(saturated(DType::F32, {1e300, -infinity}),
            (std::vector<double>{std::numeric_limits<float>::max(), -std::numeric_limits<float>::max()}));
  EXPECT_EQ(saturated(DType::F8E4M3FN, {1e6, -1e6}), (std::vector<double>{448, -448}));

  EXPECT_EQ(through<int64_t>(DType::U64, {-5}, Overflow::Saturate), std::vector<int64_t>{0});
  EXPECT_EQ(through<int64_t>(DType::U16, {-5, 70000}, Overflow::Saturate), (std::vector<int64_t>{0, 65535}));
  EXPECT_EQ(through<uint64_t>(DType::I64, {u64_max}, Overflow::Saturate),
            std::vector<uint64_t>{static_cast<uint64_t>(i64_max)});
  EXPECT_EQ(through<uint64_t>(DType::I2, {3}, Overflow::Saturate), std::vector<uint64_t>{1});
}

TEST(Narrow, FloatsOverflowNaturally) {
  EXPECT_EQ(through<double>(DType::F32, {1e300, -1e300}), (std::vector<double>{infinity, -infinity}));
  EXPECT_EQ(through<double>(DType::F16, {65520}), std::vector<double>{infinity});
  EXPECT_TRUE(std::isnan(through<double>(DType::F8E4M3FN, {1e6})[0]));
  EXPECT_EQ(through<double>(DType::F4E2M1, {1e6}), std::vector<double>{6});
}

TEST(Narrow, IntegersBecomeFloatsInOneRounding) {
  // Just above halfway between two floats; a double in between would lose the one that decides.
  const int64_t f32_half = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  EXPECT_EQ(through<int64_t>(DType::F32, {f32_half, -f32_half}),
            (std::vector<int64_t>{(int64_t{1} << 60) + (int64_t{1} << 37),
                                  -(int64_t{1} << 60) - (int64_t{1} << 37)}));
  const int64_t bf16_half = (int64_t{1} << 60) + (int64_t{1} << 52) + 1;
  EXPECT_EQ(through<int64_t>(DType::BF16, {bf16_half, bf16_half - 1, -bf16_half}),
            (std::vector<int64_t>{(int64_t{1} << 60) + (int64_t{1} << 53), int64_t{1} << 60,
                                  -(int64_t{1} << 60) - (int64_t{1} << 53)}));
  EXPECT_EQ(through<int64_t>(DType::BF16, {i64_min}), std::vector<int64_t>{i64_min});
  EXPECT_EQ(widen<double>(narrow_all<uint64_t>(DType::BF16, {u64_max})), std::vector<double>{0x1p64});
  EXPECT_EQ(widen<double>(narrow_all<int64_t>(DType::F16, {100000})), std::vector<double>{infinity});
}

TEST(Narrow, ScalesRoundUpUnlessTold) {
  const std::vector<double> values{1.1, 0.9};
  EXPECT_EQ(through<double>(DType::F8E8M0, values), (std::vector<double>{2, 1}));
  EXPECT_EQ(widen<double>(narrow_to_scales({2}, values, Overflow::Natural, ScaleRounding::Down)),
            (std::vector<double>{1, 0.5}));
}

TEST(Narrow, WantsAsManyValuesAsElements) {
  const std::vector<double> values{1, 2, 3};
  EXPECT_THROW(narrow<double>(DType::F32, {2}, values), InternalError);
}

TEST(Wide, RefusesWhatIsNoNumber) {
  expect_error<UserError>([] { widen<double>(Tensor(DType::String, {1})); },
                          "str elements cannot be computed with");
  expect_error<UserError>([] { filled(DType::C64, {2}, 1); }, "c64 elements cannot be computed with");
  expect_error<UserError>([] { with_wide(DType::C128, [](auto) {}); },
                          "c128 elements cannot be computed with");
}

TEST(Wide, RefusesToWidenBeyondMemory) {
  // Reserved addresses, so that the tensor itself takes no memory.
  const auto count = static_cast<int64_t>(memory_limit() / 4);
  const auto size = static_cast<size_t>(count);
  void* reserved = ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  const Tensor t(DType::U8, {count}, nullptr, {static_cast<const std::byte*>(reserved), size});
  expect_error<UserError>(
      [&] { widen<double>(t); },
      fmt::format("computing with u8[{}] needs 8 bytes for each of {} elements, but this machine "
                  "has {} bytes of memory",
                  count, count, memory_limit()));
  ::munmap(reserved, size);
}

TEST(WithWide, ChoosesTheTypeByKind) {
  const auto name = [](DType dtype) {
    return with_wide(dtype, []<class T>(T) {
      return std::is_same_v<T, double> ? "double" : std::is_same_v<T, int64_t> ? "signed" : "unsigned";
    });
  };
  EXPECT_STREQ(name(DType::F8E8M0), "double");
  EXPECT_STREQ(name(DType::I4), "signed");
  EXPECT_STREQ(name(DType::Bool), "unsigned");
}

TEST(Scalars, AreTheOnlyElement) {
  EXPECT_EQ(as_double(Tensor::scalar(2.5f)), 2.5);
  EXPECT_EQ(as_int(Tensor::of<int32_t>({-3})), -3);
  EXPECT_EQ(as_ints(Tensor::of<int32_t>({4, 5})), (std::vector<int64_t>{4, 5}));
  expect_error<UserError>([] { as_int(Tensor::of<int32_t>({1, 2})); }, "one element was wanted, got i32[2]");
  expect_error<UserError>([] { as_double(Tensor()); }, "one element was wanted, got f32[0]");
}

TEST(Filled, HasTheValueEverywhere) {
  EXPECT_EQ(widen<double>(filled(DType::BF16, {3}, 1.5)), (std::vector<double>{1.5, 1.5, 1.5}));
  EXPECT_TRUE(std::signbit(filled(DType::F64, {}, -0.0).data<double>()[0]));
  EXPECT_EQ(filled(DType::I4, {2, 2}, -3).data<int8_t>()[3], -3);
}

}  // namespace
}  // namespace tenon
