// stack.h — how eval functions put tensors together along an axis.
#pragma once

#include "tensor/tensor.h"

namespace tenon {

// Side by side along an axis there is; at least one part. Parts that differ elsewhere are a user_error naming
// the op.
Tensor concatenate(std::string_view op, const std::vector<Tensor>& parts, int64_t axis);

// One after the other along a new axis, which is counted in the result.
Tensor stack(std::string_view op, const std::vector<Tensor>& parts, int64_t axis);

}  // namespace tenon
