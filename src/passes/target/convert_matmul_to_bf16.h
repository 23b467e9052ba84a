// convert_matmul_to_bf16.h — products in bf16.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Rounds the operands of f32 products with constant matrices to bf16, multiplied in pairs and accumulated in
// f32. The matrices become nodes that depend on constants alone.
void convert_matmul_to_bf16(Graph& graph, Journal& journal);

}  // namespace tenon
