// lower_resize.h — resize, for lowering: tables of neighbours and weights along each dimension, and sums over
// them.
#pragma once

#include "ops/lower.h"

namespace tenon {

void lower_resize(LowerContext& c);

}  // namespace tenon
