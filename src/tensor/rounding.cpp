#include "tensor/rounding.h"

namespace tenon {

double rounding_step(DType dtype) {
  switch (dtype) {
    case DType::F64:
      return 0x1p-52;
    case DType::F32:
      return 0x1p-23;
    case DType::F16:
      return 0x1p-10;
    case DType::BF16:
      return 0x1p-7;
    case DType::F8E4M3FN:
    case DType::F8E4M3FNUZ:
      return 0x1p-3;
    case DType::F8E5M2:
    case DType::F8E5M2FNUZ:
      return 0x1p-2;
    case DType::F4E2M1:
      return 0x1p-1;
    case DType::F8E8M0:
      return 1;
    default:
      return 0;
  }
}

}  // namespace tenon
