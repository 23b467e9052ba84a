// equal.h — structural equality and hash: the same computation, whatever the values and nodes are called.
#pragma once

#include <string>

#include "ir/graph.h"

namespace tenon {

uint64_t structural_hash(const Graph& graph);

// Empty when the graphs are structurally equal, else where they first differ.
std::string difference(const Graph& a, const Graph& b);

}  // namespace tenon
