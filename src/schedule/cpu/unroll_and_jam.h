// unroll_and_jam.h — several blocks of a row of sums at once: the next term of a sum waits until the last
// one is added, and the terms of other blocks fill that time.
#pragma once

#include "loops/kernel.h"
#include "target/target.h"

namespace tenon::schedule {

// Puts iterations of the parallel loop that a nest consists of side by side, where each keeps a few vectors
// of sums. Every sum is added up in the order that it had.
void unroll_and_jam(std::vector<loops::Statement>& nest, const Target& target);

}  // namespace tenon::schedule
