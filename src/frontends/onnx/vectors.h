// vectors.h — lists of an attribute as tensors of rank 1.
#pragma once

#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace tenon::onnx {

Tensor string_vector(std::vector<std::string> values);
Tensor float_vector(const std::vector<double>& values);  // of f32

}  // namespace tenon::onnx
