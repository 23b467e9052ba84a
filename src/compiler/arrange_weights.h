// arrange_weights.h — constant operands of products, laid out as code reads them fastest.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Constant matrices on the right of a product, or several joined along their rows, are transposed now, where
// the node would do so in every run: then vectors run along a row of the result and of the matrix at once.
void arrange_weights(Graph& graph, int threads);

// The same elements with the dimensions in this order, the outermost first.
Tensor reordered(const Tensor& tensor, const std::vector<size_t>& order);

}  // namespace tenon
