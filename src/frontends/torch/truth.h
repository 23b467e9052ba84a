// truth.h — numbers as truths.
#pragma once

#include "ops/select.h"

namespace tenon::torch {

// x ≠ 0.
inline Value truth_of(Value x) { return in_dtype(x, DType::Bool); }

}  // namespace tenon::torch
