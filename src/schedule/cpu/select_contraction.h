// select_contraction.h — decides how contractions are computed: algorithm, register tile, cache blocks and
// packing. The only place that does: everything after it reads the plan.
#pragma once

#include "lowering/contraction_plan.h"
#include "lowering/lower_graph.h"
#include "rewrite/journal.h"
#include "schedule/context.h"

namespace tenon::schedule {

struct SelectContext {
  const Target& target;
  int threads;
  NumericsBudget numerics;
  bool may_pack_a;  // whether a step that packs A may be added
};

// The plan for a reduction of the graph, with what was weighed. What tuning chose for the stage overrides the
// cost model, where numerics, target and shape allow it. Layouts are chosen, nothing is packed yet.
lowering::ContractionPlan select_contraction(const lowering::Stage& stage, const lowering::KernelGraph& graph,
                                             const SelectContext& context);

// Gives each reduction of the graph its plan.
void select_contractions(lowering::KernelGraph& graph, const SelectContext& context);

// The plan for a product within the nest of another kernel, where operands lie in local buffers.
lowering::ContractionPlan select_inner_product(const loops::Definition& product, const Context& context);

// The plan for a part of a contraction that is planned already: the same algorithm and packing, for the
// sizes of the part.
lowering::ContractionPlan select_part(const lowering::Stage& part, const Context& context);

// The register tile, blocks and packing, for people: "gemm 13x32, packed B, 2 parts", "winograd 4x4, …".
std::string describe(const lowering::ContractionPlan& plan);

}  // namespace tenon::schedule
