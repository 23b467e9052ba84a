// partition_loops.h — loops divided where their conditions change, so that each part asks for less.
#pragma once

#include "loops/kernel.h"
#include "target/target.h"

namespace tenon::schedule {

// Divides loops in vectors whose lanes choose by where they stand, as those that join tensors do along their
// last axis. Parts that would not fill a vector stay together, and go on choosing.
void partition_loops(std::vector<loops::Statement>& body, const Target& target);

}  // namespace tenon::schedule
