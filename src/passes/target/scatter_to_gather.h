// scatter_to_gather.h — rows that are put where indices say, as rows that are fetched.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// scatter_nd whose tuples name whole rows of x, and scatter_elements whose indices are the same for all
// elements of a row, put the numbers of the updates there instead: a small tensor of sources. Then each row
// of the result is fetched by its source. So indices need not be repeated for all elements of a row, rows
// come at once and not one after the other, and x is not copied first: what makes it, and other updates of
// it, may be computed with the result. Of several updates of one place the last stays, as before.
// Only where updates replace what stands there, and a row is long enough to be worth it.
void scatter_to_gather(Graph& graph, Journal& journal);

}  // namespace tenon
