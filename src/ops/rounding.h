// rounding.h — what an op leaves between two of its steps, rounded as a tensor between two ops would be.
#pragma once

#include <span>

#include "tensor/dtype.h"

namespace tenon {

// For ops that are defined as a chain of simpler ones on tensors of `dtype`. Only floats of 16 bits and fewer
// are rounded: in wider ones nobody sees the difference.
void round_step(DType dtype, std::span<double> values);

}  // namespace tenon
