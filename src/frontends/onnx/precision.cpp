#include "frontends/onnx/precision.h"

#include "ops/select.h"

namespace tenon::onnx {

Value in_dtype(Value x, DType dtype) { return !x || x.dtype() == dtype ? x : cast(x, dtype); }

Value widened(Value x) {
  if (!is_float(x.dtype()))
    return cast(x, DType::F64);
  return x.dtype() == DType::F64 ? x : in_dtype(x, DType::F32);
}

}  // namespace tenon::onnx
