// small_sizes.h — sizes for the symbols of a graph: small ones that it can be run with, or those of inputs.
#pragma once

#include "verify/listener.h"

namespace tenon {

// A copy of the graph whose inputs have known sizes, as small as the graph runs with. What runs with none of
// the sizes tried is the user's to size.
std::unique_ptr<Graph> with_small_sizes(const Graph& graph, const Listener& listener = {});

// A copy of the graph whose symbols, where they are a dimension of an input, are the sizes of these.
std::unique_ptr<Graph> with_sizes_of(const Graph& graph, const Data& inputs);

}  // namespace tenon
