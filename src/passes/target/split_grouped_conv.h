// split_grouped_conv.h — convolutions in groups by weights that only running tells, as one for each group.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Constant weights are put in an order in which groups stand side by side. Others lie as they were computed,
// filter by filter, and only filters of one group multiply the same pixels.
void split_grouped_conv(Graph& graph, Journal& journal);

}  // namespace tenon
