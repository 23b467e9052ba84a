// pack_b.h — constants in the order in which products read them.
#pragma once

#include "lowering/lower_graph.h"

namespace tenon::schedule {

// Lets products with constants read them from panels (see PackedB), which are made when the program is
// compiled.
void pack_b(lowering::LoweredGraph& lowered, const Target& target);

}  // namespace tenon::schedule
