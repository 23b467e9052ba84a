// split_reductions.h — long reductions to few elements in two steps, so that every multiprocessor takes part:
// first parts of each, then what these combine to. The order is fixed, so that the bits are the same in every
// run.
#pragma once

#include "lowering/kernel_graph.h"
#include "target/gpu.h"

namespace tenon::schedule::cuda {

void split_reductions(lowering::KernelGraph& graph, const Gpu& gpu);

}  // namespace tenon::schedule::cuda
