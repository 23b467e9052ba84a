// byte_count.h — how much memory the elements of a tensor take.
#pragma once

#include "tensor/tensor.h"

namespace tenon {

// 0 for strings. Bytes that cannot be counted are the user's fault, like extents that element_count refuses.
int64_t byte_count(DType dtype, const Extents& extents);

}  // namespace tenon
