// gemm.h — the loops of a contraction around a microkernel: a tile of results stays in registers during the
// reduction. Also implicit GEMM for convolutions.
#pragma once

#include <set>

#include "lowering/contraction_plan.h"

namespace tenon::schedule {

// `definitions` have the same axes: the first reduces, in the tile of the plan; the others are its pointwise
// epilogue. Only `outputs` are stored. `packed_b` and `packed_a`: operands of the first.
std::vector<loops::Statement> build_gemm(const std::vector<loops::Definition>& definitions,
                                         const std::set<std::string>& outputs,
                                         const lowering::ContractionPlan& plan, const Target& target,
                                         const std::optional<lowering::PackedB>& packed_b = std::nullopt,
                                         const std::optional<lowering::PackedA>& packed_a = std::nullopt);

}  // namespace tenon::schedule
