// sample_inputs.h — inputs made by rule, so that two engines can be compared on the same numbers.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Element i is sin(0.37 i) + 0.1 for floats, 7919 i mod `integers` for integers, true for booleans, empty for
// strings and 0 for complex numbers. Every symbol of a dimension is 1, and so is an unknown dimension. What
// has no such value (an unknown rank, a sequence, a dimension below 0) is the user's fault: they must give
// it.
constexpr int64_t kIntegers = 1000;
Tensor sample_input(const TensorType& type, int64_t integers = kIntegers);
// Integers that name places in something smaller, as the ids of words do in a table, are below its size.
Data sample_inputs(const Graph& graph);

// How the sizes of its inputs are given on the command line: --dim batch=… --dim seq=…; empty where they are
// fixed.
std::string dims_to_bind(const Graph& graph);

}  // namespace tenon
