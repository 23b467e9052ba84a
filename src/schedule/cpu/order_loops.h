// order_loops.h — the order of loops over elements that are each computed by themselves, such that memory is
// read and written by whole cache lines, also where what is written lies in another order than what is read.
#pragma once

#include "loops/definition.h"

namespace tenon::schedule {

// Loops around assignments, of which each iteration writes elements of its own. The axes, two at least, are
// those of the results, in the order in which they lie there.
std::vector<loops::Statement> order_loops(std::vector<loops::Axis> axes, std::vector<loops::Statement> body);

}  // namespace tenon::schedule
