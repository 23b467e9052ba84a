#include "onnxruntime/values.h"

#include <cstring>

#include "frontends/onnx/tensor_proto.h"
#include "tensor/packing.h"

namespace tenon::onnxruntime {
namespace {

Tensor copy_strings(const Ort::ConstValue& value, Extents extents) {
  const auto count = static_cast<size_t>(element_count(extents));
  std::string all(value.GetStringTensorDataLength(), '\0');
  std::vector<size_t> starts(count);
  if (count > 0)
    value.GetStringTensorContent(all.data(), all.size(), starts.data(), count);
  starts.push_back(all.size());
  std::vector<std::string> strings;
  for (size_t i = 0; i < count; ++i)
    strings.push_back(all.substr(starts[i], starts[i + 1] - starts[i]));
  return Tensor::strings(std::move(strings), std::move(extents));
}

bool is_packed(DType dtype) { return packed_size(dtype, 8) != static_cast<uint64_t>(8 * info(dtype).bytes); }

}  // namespace

// The numbers are those of ONNX up to FLOAT4E2M1. Later ones are not, nor do the headers of ONNX Runtime 1.23
// have names for them.
DType dtype_of(ONNXTensorElementDataType type) {
  constexpr int kLastShared = 23, kUint2 = 24, kInt2 = 25, kFloat8E8M0 = 26;
  switch (const auto number = static_cast<int32_t>(type); number) {
    case kUint2:
      return DType::U2;
    case kInt2:
      return DType::I2;
    case kFloat8E8M0:
      return DType::F8E8M0;
    default:
      if (number > kLastShared)
        throw unsupported("tensors of ONNX Runtime's element type {}", number);
      return onnx::to_dtype(number);
  }
}

Tensor view_of(const Ort::ConstValue& value) {
  const Ort::TensorTypeAndShapeInfo type = value.GetTensorTypeAndShapeInfo();
  const DType dtype = dtype_of(type.GetElementType());
  Extents extents = type.GetShape();
  if (dtype == DType::String)
    return copy_strings(value, std::move(extents));
  const auto* const first = static_cast<const std::byte*>(value.GetTensorRawData());
  const std::span<const std::byte> bytes(first, packed_size(dtype, element_count(extents)));
  if (is_packed(dtype))
    return unpack(dtype, extents, bytes);
  return {dtype, std::move(extents), nullptr, bytes};
}

void copy_to(const Tensor& tensor, const Ort::UnownedValue& value) {
  Ort::UnownedValue to = value;
  if (tensor.dtype() == DType::String) {
    std::vector<const char*> strings;
    for (const std::string& each : tensor.strings())
      strings.push_back(each.c_str());
    to.FillStringTensor(strings.data(), strings.size());
    return;
  }
  void* const first = to.GetTensorMutableRawData();
  if (is_packed(tensor.dtype())) {
    const std::vector<std::byte> bytes = pack(tensor);
    std::memcpy(first, bytes.data(), bytes.size());
  } else if (!tensor.bytes().empty()) {
    std::memcpy(first, tensor.bytes().data(), tensor.bytes().size());
  }
}

}  // namespace tenon::onnxruntime
