// fold_requantize.h — the scales of quantised numbers, made part of the scales that stand beside them.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Lets numbers be quantised by multiplying with the reciprocal of a constant scale, which becomes part of the
// constants that they are multiplied with, and that are added to them. They are rounded otherwise than by a
// division, so that a result may move by one step. Inputs are quantised as they are given.
void fold_requantize(Graph& graph, Journal& journal);

}  // namespace tenon
