// join.h — tensors side by side as one.
#pragma once

#include "tensor/tensor.h"

namespace tenon {

// Tensors that differ in one dimension at most, joined along it.
Extents joined_extents(const std::vector<Tensor>& pieces, size_t dim);
Tensor join(const std::vector<Tensor>& pieces, size_t dim);

}  // namespace tenon
