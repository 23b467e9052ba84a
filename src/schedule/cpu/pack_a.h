// pack_a.h — packs the activations of products (A) into row blocks.
#pragma once

#include "lowering/lower_graph.h"

namespace tenon::schedule {

// Lets products with packed B read the other operand from row blocks (see PackedA), which a separate node
// packs. Products with the same operand share them.
void pack_a(lowering::KernelGraph& graph);

}  // namespace tenon::schedule
