// contraction_candidates.h — how else a sum of products may be computed, for those who measure what is best.
#pragma once

#include <string>

#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// What was chosen for a sum of products, by estimate or by whoever asked, in full; empty where nothing of it
// can be chosen. The stage is as it is handed to build_nest.
lowering::ContractionChoice choice_made(const lowering::Stage& sum, const Target& target);

// A few others that promise most: other algorithms, rows in blocks or not, and blocks that fill the registers
// in other ways, without spilling.
std::vector<lowering::ContractionChoice> contraction_candidates(const lowering::Stage& sum,
                                                                const Target& target);

// "Winograd 4x4, 7 rows x 2 parts", "13 rows x 2 vectors, packed A"; for reports.
std::string describe(const lowering::ContractionChoice& choice);

}  // namespace tenon::schedule
