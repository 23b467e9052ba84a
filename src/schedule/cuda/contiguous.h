// contiguous.h — along which axes loads are of consecutive elements.
#pragma once

#include <span>

#include "loops/definition.h"

namespace tenon::schedule::cuda {

constexpr int64_t kVectorBytes = 16;  // that one instruction loads

// How many consecutive elements along the axis one instruction can load, from any multiple of that on: a
// power of two. 0 where the next iteration does not read the next element in memory.
int64_t vector_along(const loops::Scalar& load, const loops::Axis& axis,
                     std::span<const loops::Buffer> buffers);

}  // namespace tenon::schedule::cuda
