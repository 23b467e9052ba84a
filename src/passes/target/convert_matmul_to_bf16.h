// convert_matmul_to_bf16.h — products in bf16.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Lets products of f32 with constant matrices round their factors to bf16, and multiply them two at a time;
// what they come to is added up in f32. The matrices become nodes that follow from constants.
void convert_matmul_to_bf16(Graph& graph, Journal& journal);

}  // namespace tenon
