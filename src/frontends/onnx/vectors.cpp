#include "frontends/onnx/vectors.h"

namespace tenon::onnx {

Tensor string_vector(std::vector<std::string> values) {
  const auto count = static_cast<int64_t>(values.size());
  return Tensor::strings(std::move(values), {count});
}

Tensor float_vector(const std::vector<double>& values) {
  return Tensor::of(std::vector<float>(values.begin(), values.end()));
}

}  // namespace tenon::onnx
