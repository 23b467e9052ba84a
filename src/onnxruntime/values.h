// values.h — ONNX Runtime's tensors as ours, and back.
#pragma once

#include "onnxruntime/api.h"
#include "tensor/tensor.h"

namespace tenon::onnxruntime {

// One that we do not have is an UnsupportedError.
DType dtype_of(ONNXTensorElementDataType type);

// A view of the elements, which lives as long as the value; of strings, and of elements narrower than a byte,
// a copy.
Tensor view_of(const Ort::ConstValue& value);

// Writes all elements to a value of the same dtype and sizes.
void copy_to(const Tensor& tensor, const Ort::UnownedValue& value);

}  // namespace tenon::onnxruntime
