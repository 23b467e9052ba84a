#include "views/dtype_words.h"

#include <array>

#include "base/error.h"

namespace tenon {

const DTypeWords& words_for(DType dtype) {
  // In the order of DType.
  static constexpr std::array<DTypeWords, 26> words = {{
      {DType::F64, "double", "float64", "Double", "f64", 7},
      {DType::F32, "float", "float32", "Float", "f32", 6},
      {DType::F16, "float16", "float16", "Half", "f16", 5},
      {DType::BF16, "bfloat16", "bfloat16", "BFloat16", "bf16", 15},
      {DType::F8E4M3FN, "float8e4m3fn", "float8_e4m3fn", "Float8_e4m3fn", "f8e4m3fn", 24},
      {DType::F8E4M3FNUZ, "float8e4m3fnuz", "float8_e4m3fnuz", "Float8_e4m3fnuz", "f8e4m3fnuz", 26},
      {DType::F8E5M2, "float8e5m2", "float8_e5m2", "Float8_e5m2", "f8e5m2", 23},
      {DType::F8E5M2FNUZ, "float8e5m2fnuz", "float8_e5m2fnuz", "Float8_e5m2fnuz", "f8e5m2fnuz", 25},
      {DType::F8E8M0, "float8e8m0", "float8_e8m0fnu", "Float8_e8m0fnu", "f8e8m0fnu", 44},
      {DType::F4E2M1, "float4e2m1", "float4_e2m1fn", "Float4_e2m1fn", "f4e2m1fn", 45},
      {DType::I64, "int64", "int64", "Long", "s64", 4},
      {DType::I32, "int32", "int32", "Int", "s32", 3},
      {DType::I16, "int16", "int16", "Short", "s16", 2},
      {DType::I8, "int8", "int8", "Char", "s8", 1},
      {DType::I4, "int4", "int4", "Int4", "s4", 40},
      {DType::I2, "int2", "int2", "Int2", "s2", 38},
      {DType::U64, "uint64", "uint64", "UInt64", "u64", 29},
      {DType::U32, "uint32", "uint32", "UInt32", "u32", 28},
      {DType::U16, "uint16", "uint16", "UInt16", "u16", 27},
      {DType::U8, "uint8", "uint8", "Byte", "u8", 0},
      {DType::U4, "uint4", "uint4", "UInt4", "u4", 33},
      {DType::U2, "uint2", "uint2", "UInt2", "u2", 31},
      {DType::Bool, "bool", "bool", "Bool", "pred", 11},
      {DType::String, "string", "str", "str", "str", -1},
      {DType::C64, "complex64", "complex64", "ComplexFloat", "c64", 9},
      {DType::C128, "complex128", "complex128", "ComplexDouble", "c128", 10},
  }};
  const DTypeWords& found = words.at(static_cast<size_t>(dtype));
  CHECK(found.dtype == dtype, "the words for {} stand in another place", name(dtype));
  return found;
}

}  // namespace tenon
