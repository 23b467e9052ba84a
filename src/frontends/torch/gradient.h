// gradient.h — PyTorch's gradients of ops. Each is the gradient of our conversion of the op itself, by the
// formulas that stand with our ops; what the op computed before is computed again where it is needed, and
// shared with it.
#pragma once

#include <utility>

#include "frontends/torch/conversions.h"

namespace tenon::torch {

// What an argument of the forward op is, and what its gradient is wanted for where it has floats.
using GradientInputs = std::vector<std::pair<std::string_view, Value>>;

// The gradients with respect to these inputs of what `forward` makes of a node, from those of its results. An
// empty seed is none. Integers have an empty gradient, and what nothing depends on has zeros.
std::vector<Value> gradients(const NodeView& n, const Convert& forward, const GradientInputs& inputs,
                             const std::vector<Value>& seeds);

// For an op whose other arguments are called as those of the forward op: one gradient, from that of the first
// result.
Convert gradient_of(Convert forward, std::string_view input = "self", std::string_view seed = "grad_output");
// The same where the input itself is no argument, as the gradient of a linear function does not depend on it;
// only its sizes are.
Convert gradient_by_size_of(Convert forward, std::string_view input, std::string_view sizes);

// One of three gradients is wanted or not: what is not is an empty Value.
std::vector<Value> wanted_gradients(const NodeView& n, std::vector<Value> gradients);

}  // namespace tenon::torch
