// random_inputs.h — inputs drawn at random from what a graph takes: token ids are within the table they are
// looked up in, masks are 0 or 1, and symbolic sizes are small numbers that the graph can be run with.
#pragma once

#include "verify/listener.h"

namespace tenon {

// A copy of the graph whose inputs have known sizes: the symbols are all small and equal, as small as the
// graph runs with. What runs with none of the sizes tried is the user's to size.
std::unique_ptr<Graph> with_small_sizes(const Graph& graph, const Listener& listener = {});

// A copy of the graph whose symbols, where they are a dimension of an input, are the sizes of these.
std::unique_ptr<Graph> with_sizes_of(const Graph& graph, const Data& inputs);

// What floats are drawn from: the normal distribution times a factor, or what is positive of it.
struct Spread {
  double factor = 1;
  bool is_positive = false;
};

// One draw. All sizes must be known; sequences and optionals are for the user to give.
Data random_inputs(const Graph& graph, RandomGenerator& random, const Spread& spread = {});

// Spreads that tell different things of a graph, the usual one first.
std::span<const Spread> spreads();

// Inputs, and what the graph gives for them.
struct Sample {
  Data inputs, outputs;
};

// Whether each output that is off by more than the tolerance is off by no more than a few times what it
// changes by if each float of the inputs moves by a rounding step: any rounding on the way shows as much
// then, so that comparing with them proves nothing. Another type, or NaN and infinities in other places, are
// never explained.
bool explained_by_rounding(const Graph& graph, const Sample& sample, const Data& actual, double tolerance);

// A draw for which no output is nearly zero or not a number throughout, as far as a few spreads give one:
// comparing such outputs would prove nothing.
Sample telling_sample(const Graph& graph, RandomGenerator& random, const EvaluateOptions& options = {});

}  // namespace tenon
