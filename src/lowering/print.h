// print.h — the text form of a kernel graph: see kernel_graph.h for what it looks like, parse.h for reading
// it back.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// Host calls and constants are printed as in the text of a graph: large constants by their hash.
std::string print(const KernelGraph& graph);

// One buffer, without the elements of a constant.
std::string print(const KernelBuffer& buffer, const KernelGraph& graph);

// One node, with the graph's names of buffers.
std::string print(const KernelNode& node, const KernelGraph& graph);

}  // namespace tenon::lowering
