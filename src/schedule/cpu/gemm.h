// gemm.h — the loops of a reduction that reads elements again and again: a block of results is kept in
// registers while the reduced axes run.
#pragma once

#include <set>

#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// `definitions` have one and the same axes: the first reduces, the others go on with its results, element by
// element. Only what is in `outputs` is stored. Nothing where the shape is not such that this pays. Within
// the nest of another kernel, what lanes read may be side by side already, and had better not be packed
// again. `panels` and `packed_a`: of what the first reads.
std::optional<std::vector<loops::Statement>> build_gemm(
    const std::vector<loops::Definition>& definitions, const std::set<std::string>& outputs,
    const Target& target, bool may_pack = true,
    const std::optional<lowering::PackedB>& packed_b = std::nullopt,
    const std::optional<lowering::PackedA>& packed_a = std::nullopt,
    const lowering::ContractionChoice& choice = {});

}  // namespace tenon::schedule
