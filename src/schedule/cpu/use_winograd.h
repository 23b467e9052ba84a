// use_winograd.h — convolutions planned as Winograd read transformed weights, and images with room for whole
// tiles.
#pragma once

#include "lowering/lower_graph.h"
#include "target/target.h"

namespace tenon::schedule {

// Reads the plans; see select_contraction.h.
void use_winograd(lowering::KernelGraph& graph, const Target& target);

}  // namespace tenon::schedule
