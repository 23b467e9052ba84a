#include "tensor/dtype.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tenon {
namespace {

TEST(DType, EveryNameParsesBackAndIsItsOwn) {
  std::set<std::string> names;
  for (const DTypeInfo& entry : all_dtypes()) {
    EXPECT_EQ(parse_dtype(entry.name), entry.dtype);
    EXPECT_EQ(&info(entry.dtype), &entry);
    EXPECT_EQ(fmt::format("{}", entry.dtype), entry.name);
    EXPECT_TRUE(names.insert(std::string(entry.name)).second) << entry.name;
  }
  EXPECT_EQ(names.size(), 26u);
}

TEST(DType, ANameMustBeWhole) {
  EXPECT_EQ(parse_dtype("f3"), std::nullopt);
  EXPECT_EQ(parse_dtype("f32 "), std::nullopt);
  EXPECT_EQ(parse_dtype("F32"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
}

TEST(DType, AByteHoldsWhatIsNarrower) {
  for (const DTypeInfo& entry : all_dtypes())
    EXPECT_EQ(entry.bytes, (entry.bits + 7) / 8) << entry.name;
}

TEST(DType, KindsAreApart) {
  EXPECT_TRUE(is_float(DType::F4E2M1));
  EXPECT_FALSE(is_float(DType::C64));
  EXPECT_TRUE(is_integer(DType::I2));
  EXPECT_TRUE(is_integer(DType::U64));
  EXPECT_FALSE(is_integer(DType::Bool));
  EXPECT_FALSE(is_signed(DType::U8));
  EXPECT_FALSE(is_unsigned(DType::Bool));
}

}  // namespace
}  // namespace tenon
