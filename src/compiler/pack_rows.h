// pack_rows.h — what products compute with besides their weights, in the order in which they read it.
#pragma once

#include "compiler/lower_graph.h"

namespace tenon {

// Lets products whose weights lie in panels read the other factor from blocks of rows (see RowBlocks), which
// an item of its own moves there. Products with the same factor share them.
void pack_rows(LoweredGraph& lowered, const Target& target);

}  // namespace tenon
