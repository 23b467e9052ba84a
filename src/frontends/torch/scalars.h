// scalars.h — where an op goes along an axis, PyTorch takes a scalar for a vector of one element.
#pragma once

#include "ops/reshape.h"

namespace tenon::torch {

inline Value as_vector(Value x) { return x.rank() == 0 ? reshape(x, {1}) : x; }
// `y`, which was computed of as_vector(x), as a scalar again where x is one.
inline Value as_scalar_like(Value y, Value x) {
  return x.rank() == 0 && y.rank() != 0 ? reshape(y, std::vector<int64_t>{}) : y;
}

}  // namespace tenon::torch
