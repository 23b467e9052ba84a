// fields.h — the field numbers of ONNX's TensorProto, which is both read and written.
#pragma once

#include <cstdint>

namespace tenon::onnx::tensor_field {

constexpr uint32_t dims = 1, data_type = 2, segment = 3, float_data = 4, int32_data = 5, string_data = 6,
                   int64_data = 7, name = 8, raw_data = 9, double_data = 10, uint64_data = 11,
                   external_data = 13, data_location = 14;

}  // namespace tenon::onnx::tensor_field
