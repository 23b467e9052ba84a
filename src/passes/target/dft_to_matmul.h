// dft_to_matmul.h — short Fourier transforms, which are products with the matrix of the transform.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Makes products of those whose length is known and not large; a fast one is a recursion, and no kernel.
void dft_to_matmul(Graph& graph, Journal& journal);

}  // namespace tenon
