// decompose_pooling.h — poolings with large windows as several with small ones.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Where that is estimated to take less time:
//
// - The greatest element of a window is the greatest of the greatest of its rows, and its mean the mean of
//   their means, whichever of its cells lie in the padding. So a pooling of a window of k x k cells is one of
//   1 x k and one of k x 1.
// - Along one dimension, the greatest of 13 elements is the greatest of 4 that stand 3 apart, each the
//   greatest of 4; a mean of 15 is one of 5 that stand 3 apart, each the mean of 3.
// - Of an image that several greatest elements are taken of, at every pixel, the larger windows are made of
//   what the smaller ones gave: of 5 x 5 those of 9 x 9, of these those of 13 x 13.
//
// Means round otherwise, so they stay as they are under strict numerics. So does a pooling that also tells
// where the greatest elements stand.
void decompose_pooling(Graph& graph, Journal& journal);

}  // namespace tenon
