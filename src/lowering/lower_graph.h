// lower_graph.h — the nodes of a graph as those of a kernel graph, before any are fused.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// The kernel graph refers to the nodes of the graph that it calls on the host, and to its constants.
KernelGraph lower_graph(const Graph& graph);

}  // namespace tenon::lowering
