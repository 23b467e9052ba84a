// sparse.h — ONNX sparse tensors as dense literals.
#pragma once

#include "frontends/onnx/tensor_proto.h"

namespace tenon::onnx {

// Indices that are out of range or do not ascend are the user's fault; a tensor that would be large when
// dense is not supported.
Literal to_dense(const SparseTensorProto& sparse, WeightFiles& files);

}  // namespace tenon::onnx
