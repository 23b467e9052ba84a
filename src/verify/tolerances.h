// tolerances.h — how close what a model gives must come to what it gave before it was rewritten.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Rounding steps of a dtype that rewrites may move a result by: as many as sums and products in another order
// take.
constexpr double kRoundingSteps = 8;

// For each output: the tolerance, or kRoundingSteps of the narrowest float that anything on its way is
// rounded to, where those are wider. Floats of 8 bits or fewer do not count: they are quantised numbers, and
// so many of their steps would let anything pass.
std::vector<double> tolerances_of(const Graph& model, double tolerance);

}  // namespace tenon
