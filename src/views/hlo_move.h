// hlo_move.h — ops that only choose and place elements, as HLO's slice, gather, pad and the like.
#pragma once

#include "views/hlo_computation.h"

namespace tenon {

// Writes what stands for the node; false, with nothing written, when it is no such op, or one that HLO cannot
// tell: with bounds that are not known, say.
bool write_hlo_move(HloComputation& out, const Node& node);

}  // namespace tenon
