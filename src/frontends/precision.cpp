#include "frontends/precision.h"

#include "ops/select.h"

namespace tenon {

Value widened(Value x) {
  if (!is_float(x.dtype()))
    return cast(x, DType::F64);
  return x.dtype() == DType::F64 ? x : in_dtype(x, DType::F32);
}

}  // namespace tenon
