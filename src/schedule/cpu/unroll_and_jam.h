// unroll_and_jam.h — interleaves several blocks of sums, whose independent additions hide each other's
// latency.
#pragma once

#include "loops/kernel.h"
#include "schedule/context.h"

namespace tenon::schedule {

// Unrolls and jams the parallel loop of a nest whose iterations each keep a few vectors of sums. The order of
// additions within each sum does not change.
void unroll_and_jam(std::vector<loops::Statement>& nest, const Context& context);

}  // namespace tenon::schedule
