// compute_weights.h — folds computations on constants at compile time.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "rewrite/journal.h"
#include "tensor/datum.h"

namespace tenon {

// Nodes that only constants lead to become constants, unless that takes more memory than what they are made
// of, or four times as much for weights of convolutions. `run` gives the outputs of a graph without inputs.
void compute_weights(Graph& graph, Journal& journal, const std::function<Data(const Graph&)>& run);

}  // namespace tenon
