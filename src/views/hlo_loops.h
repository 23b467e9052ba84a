// hlo_loops.h — loops as HLO's while: a state that is one tuple, a condition on it, and a body that makes the
// next state of it.
#pragma once

#include <functional>

#include "views/hlo_computation.h"

namespace tenon {

using WriteHloNodes = std::function<void(HloComputation&, const Graph&)>;

// Writes a while or scan, with the nodes of its body by `write_nodes`. False, with nothing written, when it
// is no loop, or one that HLO cannot tell: one that collects values though its number of iterations is not
// known, or values whose sizes are not.
bool write_hlo_loop(HloComputation& out, const Node& node, const WriteHloNodes& write_nodes);

}  // namespace tenon
