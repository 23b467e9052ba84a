// equal.h — whether two kernel graphs are the same, with the same names of buffers.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// Empty where they are, else where they first differ. Nodes of groups may be numbered differently.
std::string difference(const KernelGraph& a, const KernelGraph& b);

}  // namespace tenon::lowering
