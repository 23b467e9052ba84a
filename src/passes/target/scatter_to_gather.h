// scatter_to_gather.h — scatters of rows as gathers.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// scatter_nd whose tuples name whole rows of x, and scatter_elements whose indices are the same for all
// elements of a row, put the numbers of the updates there instead: a small tensor of sources. Then each row
// of the result is fetched by its source. So indices need not be repeated for all elements of a row, rows
// are independent, and x is not copied first: its producer and other updates of it may be fused with the
// result. Of several updates of one place the last stays, as before. Only where updates replace what stands
// there, and a row is long enough to be worth it.
void scatter_to_gather(Graph& graph, Journal& journal);

}  // namespace tenon
