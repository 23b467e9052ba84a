// check.h — what can be wrong with a kernel graph.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// Everything that is, in words: buffers that are unknown, written twice or read before they are written,
// ranks and dtypes that do not fit, groups that do not hold each node once or cannot run in their order.
std::vector<std::string> check(const KernelGraph& graph);

}  // namespace tenon::lowering
