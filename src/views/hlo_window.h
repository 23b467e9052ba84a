// hlo_window.h — ops that combine the elements of a sliding window, as HLO's reduce-window.
#pragma once

#include "views/hlo_computation.h"

namespace tenon {

// Writes what stands for the node; false, with nothing written, when it is no such op, or one that
// reduce-window cannot tell: a max_pool whose indices are used, say.
bool write_hlo_window(HloComputation& out, const Node& node);

}  // namespace tenon
