// transpose.h — pointwise kernels that read along another axis than they write: square tiles go through
// shared memory, so that both happen along consecutive elements.
#pragma once

#include "schedule/pointwise.h"

namespace tenon::schedule::cuda {

// Gives the kernel its body. False where nothing is read so, or too little; then the kernel stays as it is.
bool transpose_tiles(loops::Kernel& kernel, const PointwiseIteration& iteration);

}  // namespace tenon::schedule::cuda
