// fold_requantize.h — folds requantisation into the scales of the layer before.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Quantises by multiplying with the reciprocal of a constant scale, which is folded into the preceding scale
// and bias. That rounds differently from a division, so a result may move by one step. Graph inputs are left
// alone.
void fold_requantize(Graph& graph, Journal& journal);

}  // namespace tenon
