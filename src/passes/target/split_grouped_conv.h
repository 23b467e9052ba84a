// split_grouped_conv.h — grouped convolutions by dynamic weights as one convolution per group.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Constant weights are packed by group. Others stay filter by filter as computed, and only filters of one
// group share pixels.
void split_grouped_conv(Graph& graph, Journal& journal);

}  // namespace tenon
