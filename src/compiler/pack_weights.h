// pack_weights.h — constants in the order in which products read them.
#pragma once

#include "compiler/lower_graph.h"

namespace tenon {

// Lets products with constants read them from panels (see Panels), which are made when the program is
// compiled.
void pack_weights(LoweredGraph& lowered, const Target& target);

}  // namespace tenon
