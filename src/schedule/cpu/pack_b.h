// pack_b.h — packs the constant weights of products (B) into panels.
#pragma once

#include "lowering/lower_graph.h"

namespace tenon::schedule {

// Lets products read constants from panels (see PackedB), which are packed at compile time.
void pack_b(lowering::KernelGraph& graph);

}  // namespace tenon::schedule
