// precision.h — dtypes to compute in, for ops that are defined by a formula of several steps.
#pragma once

#include "ir/graph.h"

namespace tenon {

// x in a dtype that intermediate results neither overflow nor lose their digits in: small floats as f32,
// integers as f64.
Value widened(Value x);

}  // namespace tenon
