// precision.h — dtypes to compute in, for ops that ONNX defines by a formula of several steps.
#pragma once

#include "ir/graph.h"

namespace tenon::onnx {

// x as a tensor of this dtype; x itself where it is one, or is left out.
Value in_dtype(Value x, DType dtype);

// x in a dtype that intermediate results neither overflow nor lose their digits in: small floats as f32,
// integers as f64.
Value widened(Value x);

}  // namespace tenon::onnx
