// bf16x3_matmul.h — f32 products as six bf16 products on a matrix unit, without loss.
#pragma once

#include "lowering/lower_graph.h"

namespace tenon::schedule {

// An f32 is the sum of three bf16: its upper half, that of the remainder, and the rest. Of the nine products
// of the parts of two f32, six suffice: the others are below f32 rounding. With matrix instructions for bf16
// (AMX) these six may take less time than one product in f32. Often they do not, where two threads share the
// matrix unit or operands come from memory, which are 1.5 times as large: so only tuning chooses it.
//
// Converts products with packed B for which that was chosen: an item for each part of A, and weights that are
// split at compile time.
void bf16x3_matmul(lowering::LoweredGraph& lowered, const Target& target);

}  // namespace tenon::schedule
