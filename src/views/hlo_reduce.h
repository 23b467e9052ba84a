// hlo_reduce.h — reductions along axes, and what is made of them: softmax and normalisations.
#pragma once

#include "views/hlo_computation.h"

namespace tenon {

// Writes the node and defines its result; false, and nothing is written, when it is no reduction that HLO's
// instructions can tell.
bool write_hlo_reduction(HloComputation& out, const Node& node);

// f32[] constant(-inf): what a reduction starts with, or the least or greatest that the dtype has.
std::string hlo_start(DType dtype, double wanted);

}  // namespace tenon
