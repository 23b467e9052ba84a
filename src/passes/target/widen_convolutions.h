// widen_convolutions.h — convolutions of halves, computed in f32.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Sums of products of f16 and bf16 are added up in f32 anyway. Where constants and what was computed before
// are made f32 once, and not again for each product, convolutions of halves are as fast as those of f32, with
// Winograd too. Products of matrices are left alone, and convolutions to one pixel: they read weights once
// where there are few rows, and halves are read faster.
void widen_convolutions(Graph& graph, Journal& journal);

}  // namespace tenon
