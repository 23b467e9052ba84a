// partition_loops.h — splits loops where their conditions change, which removes conditions from each part.
#pragma once

#include "loops/kernel.h"
#include "target/target.h"

namespace tenon::schedule {

// Splits vectorised loops whose lanes select by their index, as in a concat along the last axis. Parts too
// short for a vector stay together and keep their selects.
void partition_loops(std::vector<loops::Statement>& body, const Target& target);

}  // namespace tenon::schedule
