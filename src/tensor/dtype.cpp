#include "tensor/dtype.h"

#include <array>

#include "base/error.h"

namespace tenon {
namespace {

using enum DTypeKind;

// In the order of the enum, so that a dtype is its own index.
constexpr std::array table{
    DTypeInfo{DType::F64, "f64", Float, 64, 8},
    DTypeInfo{DType::F32, "f32", Float, 32, 4},
    DTypeInfo{DType::F16, "f16", Float, 16, 2},
    DTypeInfo{DType::BF16, "bf16", Float, 16, 2},
    DTypeInfo{DType::F8E4M3FN, "f8e4m3fn", Float, 8, 1},
    DTypeInfo{DType::F8E4M3FNUZ, "f8e4m3fnuz", Float, 8, 1},
    DTypeInfo{DType::F8E5M2, "f8e5m2", Float, 8, 1},
    DTypeInfo{DType::F8E5M2FNUZ, "f8e5m2fnuz", Float, 8, 1},
    DTypeInfo{DType::F8E8M0, "f8e8m0", Float, 8, 1},
    DTypeInfo{DType::F4E2M1, "f4e2m1", Float, 4, 1},
    DTypeInfo{DType::I64, "i64", Signed, 64, 8},
    DTypeInfo{DType::I32, "i32", Signed, 32, 4},
    DTypeInfo{DType::I16, "i16", Signed, 16, 2},
    DTypeInfo{DType::I8, "i8", Signed, 8, 1},
    DTypeInfo{DType::I4, "i4", Signed, 4, 1},
    DTypeInfo{DType::I2, "i2", Signed, 2, 1},
    DTypeInfo{DType::U64, "u64", Unsigned, 64, 8},
    DTypeInfo{DType::U32, "u32", Unsigned, 32, 4},
    DTypeInfo{DType::U16, "u16", Unsigned, 16, 2},
    DTypeInfo{DType::U8, "u8", Unsigned, 8, 1},
    DTypeInfo{DType::U4, "u4", Unsigned, 4, 1},
    DTypeInfo{DType::U2, "u2", Unsigned, 2, 1},
    DTypeInfo{DType::Bool, "bool", Bool, 8, 1},
    DTypeInfo{DType::String, "str", String, 0, 0},
    DTypeInfo{DType::C64, "c64", Complex, 64, 8},
    DTypeInfo{DType::C128, "c128", Complex, 128, 16},
};

static_assert([] {
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].dtype != static_cast<DType>(i))
      return false;
  return table.back().dtype == DType::C128;
}());

}  // namespace

const DTypeInfo& info(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  CHECK(index < table.size(), "{} is no dtype", index);
  return table[index];
}

std::span<const DTypeInfo> all_dtypes() { return table; }

std::optional<DType> parse_dtype(std::string_view name) {
  for (const DTypeInfo& entry : table)
    if (entry.name == name)
      return entry.dtype;
  return std::nullopt;
}

}  // namespace tenon
