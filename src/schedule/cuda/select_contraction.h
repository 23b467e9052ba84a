// select_contraction.h — decides how products are computed on a GPU: with which arithmetic, and in which
// tiles. What builds the loops reads the plan.
#pragma once

#include "lowering/contraction_plan.h"
#include "rewrite/journal.h"
#include "schedule/cuda/contraction_tiles.h"

namespace tenon::schedule::cuda {

// The plan for a product, with what was weighed.
lowering::ContractionPlan select_contraction(const MatrixProduct& product, const Gpu& gpu,
                                             NumericsBudget numerics);

// Gives each product of the graph that is computed in tiles or as a GEMV its plan.
void select_contractions(lowering::KernelGraph& graph, const Gpu& gpu, NumericsBudget numerics);

// For people: "tiles of 128x64 on tensor cores, 3 stages".
std::string describe(const lowering::BlockTile& tile);

}  // namespace tenon::schedule::cuda
