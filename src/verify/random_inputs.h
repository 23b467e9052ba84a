// random_inputs.h — inputs drawn at random from what a graph takes: token ids are within the table they are
// looked up in, and symbolic sizes are small numbers that the graph can be run with.
#pragma once

#include "ir/evaluate.h"

namespace tenon {

// A copy of the graph whose inputs have known sizes: the symbols are all small and equal, as small as the
// graph runs with. What runs with none of the sizes tried is the user's to size.
std::unique_ptr<Graph> with_small_sizes(const Graph& graph);

// One draw. All sizes must be known; sequences and optionals are for the user to give.
Data random_inputs(const Graph& graph, RandomGenerator& random);

}  // namespace tenon
