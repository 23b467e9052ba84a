// quantized_matmul.h — products and convolutions of quantised numbers, computed of their bytes.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Lets products of integers that are bytes, less a zero point, multiply the bytes
// (passes/target/quantized_operands.h). The results are the same.
void quantized_matmul(Graph& graph, Journal& journal);

// Lets products of dequantised bytes be those of the bytes, and scales what they come to: the scales of a
// constant may differ from column to column. Sums of integers do not round, as those of floats do.
void dequantized_matmul(Graph& graph, Journal& journal);

}  // namespace tenon
