// sort_in_blocks.h — top_k, and with it sorting, of rows that fit into shared memory: a bitonic network, in a
// thread block for each row. What does not fit stays with the host.
#pragma once

#include "lowering/kernel_graph.h"
#include "target/gpu.h"

namespace tenon::schedule::cuda {

void sort_in_blocks(lowering::KernelGraph& graph, const Gpu& gpu);

}  // namespace tenon::schedule::cuda
