// interpret.h — runs a kernel graph as it is written, node by node and element by element: what passes over
// it are compared with. It shares no code with scheduling.
#pragma once

#include "ir/evaluate.h"
#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// The outputs. Groups run in their order, where there are any. Definitions read packed operands where these
// have their elements; a Winograd convolution, and a product split into bf16, is computed as written.
Data interpret(const KernelGraph& graph, const Data& inputs, RandomGenerator& random);

// About how many elements it computes for these inputs, without those of host calls.
int64_t count_work(const KernelGraph& graph, const Data& inputs);

}  // namespace tenon::lowering
