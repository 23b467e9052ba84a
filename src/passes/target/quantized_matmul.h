// quantized_matmul.h — products and convolutions of quantised numbers as int8 dot products.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Integer products of int8 operands less a zero point become products of the int8 values
// (passes/target/quantized_operands.h), exactly.
void quantized_matmul(Graph& graph, Journal& journal);

// Products of dequantised int8 operands become int8 products whose i32 sums are scaled; a constant may have a
// scale per column. Integer sums do not round, unlike those of floats.
void dequantized_matmul(Graph& graph, Journal& journal);

}  // namespace tenon
