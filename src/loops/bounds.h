// bounds.h — whether a kernel reads and writes within its buffers.
#pragma once

#include "loops/kernel.h"

namespace tenon::loops {

// Whether every index of every statement is known to be inside its buffer at these sizes, without running
// anything. Indices that are computed from data, and what a routine uses, are not known.
bool stays_in_bounds(const Kernel& kernel, const std::map<std::string, int64_t>& sizes);

}  // namespace tenon::loops
