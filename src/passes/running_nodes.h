// running_nodes.h — the nodes of a model that run whenever it does.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace tenon {

// Those of nested graphs included. What follows from constants and parameters alone is not among them: it is
// computed once, when the model is written or compiled.
std::vector<const Node*> running_nodes(const Graph& graph);

// How many there are.
int64_t count_nodes(const Graph& graph);

}  // namespace tenon
