// multiply_bytes.h — products and convolutions of quantised numbers, computed of their bytes.
#pragma once

#include "ir/graph.h"
#include "target/target.h"

namespace tenon {

// Lets products of integers that are bytes, less a zero point, multiply the bytes (compiler/byte_products.h).
// The results are the same.
void multiply_bytes(Graph& graph);

// Lets products of dequantised bytes be those of the bytes, and scales what they come to: the scales of a
// constant may differ from column to column. Sums of integers do not round, as those of floats do. Only where
// the machine has instructions for products of bytes.
void multiply_dequantised(Graph& graph, const Target& target);

}  // namespace tenon
