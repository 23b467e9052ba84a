// gather_convolutions.h — transposed convolutions as convolutions.
#pragma once

#include "ir/graph.h"

namespace tenon {

// A transposed convolution of stride s and dilation d scatters: element i of x adds weight k to the result at
// s*i + d*k. But what reaches the results at s*q + a, for one a below s, is a convolution of x by those
// weights for which d*k leaves a when divided by s, the last first: with g = gcd(s, d), every s/g-th weight,
// whose elements are d/g apart. Results with equally many weights that begin at the same element are one
// convolution with more filters; where no weight leaves a, they are zero. All are then put between each
// other. Only where the weights are constant and the sizes of the image known.
void gather_convolutions(Graph& graph);

}  // namespace tenon
