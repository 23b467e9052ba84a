// schedule_checks.h — the kernels that a graph is scheduled to, interpreted one by one on values recorded in
// one run of the graph, and compared with it.
#pragma once

#include "compiler/fuse_graph.h"
#include "verify/lowering_checks.h"
#include "verify/recorded_buffers.h"

namespace tenon {

// Equal kernels are interpreted once. Of a large one, one iteration of its parallel loops is; those that are
// still large, whose operands are transformed, or that call routines, are counted as unchecked.
LoweringCheck check_schedules(const compiler::FusedGraph& fused, const compiler::CompileContext& context,
                              const RecordedBuffers& recorded, const LoweringChecksOptions& options);

}  // namespace tenon
