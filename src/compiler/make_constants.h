// make_constants.h — the elements of constants, as kernels read them.
#pragma once

#include "compiler/lower_graph.h"
#include "runtime/step.h"

namespace tenon {

// Gives these slots their elements: transformed or in another order, where the lowered graph says so. What
// was read of files takes no memory until it is read again, and what the graph holds in memory is given up.
void make_constants(std::vector<Slot>& slots, const std::vector<size_t>& constants,
                    const LoweredGraph& lowered, const Target& target);

}  // namespace tenon
