// contraction_candidates.h — the choices that the tuner measures for a contraction.
#pragma once

#include <string>

#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// What the plan of a contraction amounts to, in full; empty where tuning has no choice. The stage is as
// handed to build_nest.
lowering::ContractionChoice choice_made(const lowering::Stage& sum, const Target& target);

// The most promising alternatives: other algorithms, packed A or not, and other register tiles that do not
// spill.
std::vector<lowering::ContractionChoice> contraction_candidates(const lowering::Stage& sum,
                                                                const Target& target);

// "Winograd 4x4, 7 rows x 2 parts", "tile 13x32, packed A"; for reports.
std::string describe(const lowering::ContractionChoice& choice);

}  // namespace tenon::schedule
