// reduce_columns.h — reductions across rows, as the sum of each column of a matrix: threads beside each other
// take columns beside each other, and groups of them take rows in turn.
#pragma once

#include <set>

#include "loops/kernel.h"
#include "lowering/kernel_graph.h"

namespace tenon::schedule::cuda {

// Gives the kernel its body: that of the first stage and its pointwise epilogue. False where the reduction
// cannot be shared out so; then the kernel stays as it is.
bool reduce_columns(loops::Kernel& kernel, const std::vector<lowering::Stage>& stages,
                    const std::set<std::string>& outputs);

}  // namespace tenon::schedule::cuda
