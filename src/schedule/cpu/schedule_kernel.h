// schedule_kernel.h — the loops of a kernel, arranged for a CPU: what the backend's table names.
#pragma once

#include "loops/kernel.h"
#include "lowering/kernel_graph.h"
#include "schedule/context.h"

namespace tenon::schedule {

// The kernel that computes the stages of a group. What is not in `outputs` it keeps to itself. `buffers` says
// what the names of those it reads mean.
loops::Kernel schedule_kernel(const std::vector<lowering::Stage>& stages, const lowering::Group& group,
                              const std::set<std::string>& outputs, const lowering::BufferTable& buffers,
                              const Context& context);

}  // namespace tenon::schedule
