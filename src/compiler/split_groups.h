// split_groups.h — convolutions in groups by weights that only running tells, as one for each group.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Constant weights are put in an order in which groups stand side by side. Others lie as they were computed,
// filter by filter, and only filters of one group multiply the same pixels.
void split_groups(Graph& graph);

}  // namespace tenon
