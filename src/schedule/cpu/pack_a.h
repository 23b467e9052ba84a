// pack_a.h — what products compute with besides their weights, in the order in which they read it.
#pragma once

#include "lowering/lower_graph.h"

namespace tenon::schedule {

// Lets products whose weights lie in panels read the other factor from blocks of rows (see PackedA), which
// an item of its own moves there. Products with the same factor share them.
void pack_a(lowering::LoweredGraph& lowered, const Target& target);

}  // namespace tenon::schedule
