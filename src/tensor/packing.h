// packing.h — elements as they stand in files: little-endian, types narrower than a byte packed, low bits
// first.
#pragma once

#include "tensor/tensor.h"

namespace tenon {

// The bytes that `count` elements take in a file. Not for strings.
uint64_t packed_size(DType dtype, int64_t count);

// `bytes` has just the packed size. The elements are copied; any byte but 0 is the bool 1.
Tensor unpack(DType dtype, const Extents& extents, std::span<const std::byte> bytes);
std::vector<std::byte> pack(const Tensor& t);

}  // namespace tenon
