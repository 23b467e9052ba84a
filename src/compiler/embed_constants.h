// embed_constants.h — constants in nested graphs.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Nested graphs that are handed constants get them as their own, so that what becomes of them when compiling
// (weights put in order, sums of constants) becomes of these, too.
void embed_constants(Graph& graph);

}  // namespace tenon
