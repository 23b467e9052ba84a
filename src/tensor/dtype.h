// dtype.h — the element types a tensor can have, and what is known about each.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tenon {

enum class DType : uint8_t {
  // clang-format off
  F64, F32, F16, BF16, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0, F4E2M1,  // floats
  I64, I32, I16, I8, I4, I2,                                                      // signed integers
  U64, U32, U16, U8, U4, U2,                                                      // unsigned integers
  Bool, String, C64, C128,
  // clang-format on
};

enum class DTypeKind : uint8_t { Float, Signed, Unsigned, Bool, String, Complex };

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // as printed in the text form: f32, bf16, f8e4m3fn, i4, bool, str, c64
  DTypeKind kind;
  int bits;   // of one element as the type is defined; 0 for String
  int bytes;  // of one element in memory; 0 for String. Types narrower than a byte are held one to a byte:
              // i4 and i2 as the same number in i8, u4 and u2 as in u8, f4e2m1 as its code in the low bits
};

const DTypeInfo& info(DType dtype);
std::span<const DTypeInfo> all_dtypes();
std::optional<DType> parse_dtype(std::string_view name);

inline std::string_view name(DType dtype) { return info(dtype).name; }
inline DTypeKind kind(DType dtype) { return info(dtype).kind; }
inline bool is_float(DType dtype) { return kind(dtype) == DTypeKind::Float; }
inline bool is_signed(DType dtype) { return kind(dtype) == DTypeKind::Signed; }
inline bool is_unsigned(DType dtype) { return kind(dtype) == DTypeKind::Unsigned; }
inline bool is_integer(DType dtype) { return is_signed(dtype) || is_unsigned(dtype); }

}  // namespace tenon

template <>
struct fmt::formatter<tenon::DType> : fmt::formatter<std::string_view> {
  auto format(tenon::DType dtype, format_context& ctx) const {
    return fmt::formatter<std::string_view>::format(tenon::name(dtype), ctx);
  }
};
