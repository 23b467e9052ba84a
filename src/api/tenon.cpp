// tenon.cpp — what include/tenon/tenon.h says of the library itself.
#include <tenon/tenon.h>

#include "tensor/dtype.h"

using tenon::DType;

const char* tenon_version(void) { return TENON_VERSION; }

const char* tenon_dtype_name(int32_t dtype) {
  static_assert(static_cast<int>(DType::F4E2M1) == TENON_F4E2M1 && static_cast<int>(DType::I2) == TENON_I2 &&
                static_cast<int>(DType::U2) == TENON_U2 && static_cast<int>(DType::Bool) == TENON_BOOL &&
                static_cast<int>(DType::C128) == TENON_C128);
  const bool is_known =
      dtype >= TENON_F64 && dtype <= TENON_C128 && static_cast<DType>(dtype) != DType::String;
  return is_known ? tenon::name(static_cast<DType>(dtype)).data() : nullptr;
}
