// gradient.h — reverse-mode differentiation. The walk is here; the formulas stand with the ops.
//
// Gradients are nodes like others, in the same graph as the nodes they are of. docs/gradients.md says what
// has one, and what it is where a function has a kink.
#pragma once

#include "ir/graph.h"

namespace tenon {

// A copy of `graph` that also gives the gradients of a loss. Its inputs are those of `graph`, then one for
// each float output: the gradient of the loss with respect to that output, called grad_seed, or
// grad_seed_NAME where there are several. Its outputs are those of `graph`, then the gradients with respect
// to the float inputs, then those with respect to the float parameters, in their order, called grad_NAME.
//
// Composites without a formula of their own are decomposed. An op on the way that has no gradient is an
// UnsupportedError naming its node.
std::unique_ptr<Graph> differentiate(const Graph& graph);

// The float parameters of a graph, in its order: those that `differentiate` gives gradients for.
std::vector<Node*> trained_parameters(const Graph& graph);

// Adds to `graph`, at its end, the gradients with respect to `wanted` (inputs of the graph or results of
// nodes without operands), from those with respect to its outputs. An empty Value is no gradient: nothing
// depends on it, or it does not depend on anything wanted. Nodes that had to be decomposed are replaced.
std::vector<Value> backpropagate(Graph& graph, const std::vector<Value>& output_gradients,
                                 const std::vector<Value>& wanted);

}  // namespace tenon
