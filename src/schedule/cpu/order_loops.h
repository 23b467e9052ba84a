// order_loops.h — loop order and tiling of pointwise nests, such that loads and stores use whole cache lines,
// also in transposes.
#pragma once

#include "loops/definition.h"

namespace tenon::schedule {

// Loops around assignments without dependences between iterations. The axes, at least two, are those of the
// results, in memory order.
std::vector<loops::Statement> order_loops(std::vector<loops::Axis> axes, std::vector<loops::Statement> body);

}  // namespace tenon::schedule
