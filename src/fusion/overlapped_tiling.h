// overlapped_tiling.h — which chains of kernels gain by overlapped tiling.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::fusion {

// Merges groups where an intermediate value with one reader would not stay in cache otherwise.
void overlapped_tiling(lowering::KernelGraph& graph, const Target& target, int threads);

}  // namespace tenon::fusion
