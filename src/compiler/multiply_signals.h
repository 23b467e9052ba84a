// multiply_signals.h — short Fourier transforms, which are products with the matrix of the transform.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Makes products of those whose length is known and not large; a fast one is a recursion, and no kernel.
void multiply_signals(Graph& graph);

}  // namespace tenon
