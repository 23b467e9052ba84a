// gather_convolutions.h — transposed convolutions as convolutions.
#pragma once

#include "ir/graph.h"

namespace tenon {

// A transposed convolution of stride s scatters: each element of x adds a window to the result. But what
// reaches the results at s*q + a, for one a below s, is a convolution of x by every s-th weight. All of these
// together are one convolution with s times as many filters, for each spatial dimension, whose results are
// then put between each other. Only where the weights are constant, the sizes of the
// image known, and those of the window multiples of the stride.
void gather_convolutions(Graph& graph);

}  // namespace tenon
