// rounding.h — how finely floats are spaced.
#pragma once

#include "tensor/dtype.h"

namespace tenon {

// The distance from 1 to the next number; 0 for what is no float.
double rounding_step(DType dtype);

}  // namespace tenon
