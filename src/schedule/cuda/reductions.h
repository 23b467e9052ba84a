// reductions.h — what schedules of reductions ask about them.
#pragma once

#include "loops/definition.h"

namespace tenon::schedule::cuda {

// Whether parts may be combined apart and then with each other: the combine is built in, and starts from what
// changes nothing.
bool is_divisible(const loops::Definition& reduction);

// Whether consecutive elements are reduced, so that threads beside each other take those of one result; else
// they take results beside each other.
bool reduces_consecutive(const loops::Definition& reduction);

// Columns beside each other that a thread block reduces.
constexpr int64_t kColumnsOfBlock = 32;
constexpr double kLaunchNanoseconds = 1200;  // that a kernel more takes in a CUDA graph

}  // namespace tenon::schedule::cuda
