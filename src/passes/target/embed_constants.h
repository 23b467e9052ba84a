// embed_constants.h — constants in nested graphs.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Nested graphs get copies of the constants that they are handed, so that compiling them folds and packs
// these, too.
void embed_constants(Graph& graph, Journal& journal);

}  // namespace tenon
