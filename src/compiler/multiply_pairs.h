// multiply_pairs.h — products in bf16.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Lets products of f32 with constant matrices round their factors to bf16, and multiply them two at a time;
// what they come to is added up in f32. The matrices become nodes that follow from constants.
void multiply_pairs(Graph& graph);

}  // namespace tenon
