// overwrite.h — kernels that compute a result in the memory of what it is made of.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// Whether the output may lie in the memory of the input: one statement writes it, once for each element,
// and the input is read at that index alone, by that statement or one before it.
bool can_overwrite(const Kernel& kernel, size_t input, size_t output);

}  // namespace tenon::loops
