// hlo_formulas.h — elementwise ops that HLO has no instruction for, as the formula they stand for.
#pragma once

#include "views/hlo_computation.h"

namespace tenon {

// Writes what stands for the node; false, with nothing written, when it is no such op.
bool write_hlo_formula(HloComputation& out, const Node& node);

}  // namespace tenon
