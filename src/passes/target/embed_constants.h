// embed_constants.h — constants in nested graphs.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Nested graphs that are handed constants get them as their own, so that what becomes of them when compiling
// (weights put in order, sums of constants) becomes of these, too.
void embed_constants(Graph& graph, Journal& journal);

}  // namespace tenon
