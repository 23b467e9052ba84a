// gemm.h — the loops of a contraction around a microkernel: a tile of results stays in registers during the
// reduction. Also implicit GEMM for convolutions.
#pragma once

#include <set>

#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// `definitions` have the same axes: the first reduces, the others are its pointwise epilogue. Only `outputs`
// are stored. Nothing where the shape does not pay. Within the nest of another kernel, `may_pack` is false
// where operands are contiguous already. `packed_b` and `packed_a`: operands of the first.
std::optional<std::vector<loops::Statement>> build_gemm(
    const std::vector<loops::Definition>& definitions, const std::set<std::string>& outputs,
    const Target& target, bool may_pack = true,
    const std::optional<lowering::PackedB>& packed_b = std::nullopt,
    const std::optional<lowering::PackedA>& packed_a = std::nullopt,
    const lowering::ContractionChoice& choice = {});

}  // namespace tenon::schedule
