// gather_convolutions.h — transposed convolutions as convolutions.
#pragma once

#include "ir/graph.h"

namespace tenon {

// A transposed convolution of stride s scatters: each element of x adds a window to the result. But what
// reaches the results at s*q + a, for one a below s, is a convolution of x by every s-th weight, the last
// first. Those that have equally many weights are one convolution with more filters; their results are then
// put between each other. Only where the weights are constant, the sizes of the image known, and windows not
// smaller than their strides.
void gather_convolutions(Graph& graph);

}  // namespace tenon
