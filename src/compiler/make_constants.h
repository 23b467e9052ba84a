// make_constants.h — the elements of constants, as kernels read them.
#pragma once

#include "lowering/lower_graph.h"
#include "runtime/step.h"

namespace tenon::compiler {

// Gives these slots their elements: transformed or in another order, where the lowered graph says so. What
// was read of files takes no memory until it is read again, and what the graph holds in memory is given up.
void make_constants(std::vector<runtime::Slot>& slots, const std::vector<size_t>& constants,
                    const lowering::LoweredGraph& lowered, const Target& target);

}  // namespace tenon::compiler
