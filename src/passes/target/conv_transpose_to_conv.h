// conv_transpose_to_conv.h — transposed convolutions as convolutions.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// A transposed convolution of stride s and dilation d scatters: element i of x adds weight k to the result at
// s*i + d*k. But what reaches the results at s*q + a, for one a below s, its phase, is a convolution of x by
// the weights for which d*k leaves a when divided by s, the last first: with g = gcd(s, d), every s/g-th
// weight, on elements that are d/g apart. Phases with equally many weights that begin at the same element are
// one convolution with more filters; those that no weight reaches are zero. All are then interleaved.
// Only where the sizes of the weights and of padding are known, and convolutions not too many. Weights
// meet the zeros around the image, of which an infinite one makes NaN: under `strict` they must be constants.
void conv_transpose_to_conv(Graph& graph, Journal& journal);

}  // namespace tenon
