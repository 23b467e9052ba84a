// nest.h — the loop nest of a group of stages, scheduled for a target.
#pragma once

#include "loops/kernel.h"
#include "lowering/kernel_graph.h"
#include "schedule/context.h"

namespace tenon::schedule {

// The kernel that computes the stages in order. What is not in `outputs` it keeps to itself. `buffers` says
// what the names of those it reads mean.
loops::Kernel build_nest(const std::string& name, const std::vector<lowering::Stage>& stages,
                         const lowering::Group& group, const std::set<std::string>& outputs,
                         const lowering::BufferTable& buffers, const Context& context);

// The unscheduled nest, for printing: the stages in sequence, each over all its elements, without padding.
loops::Kernel unscheduled_nest(const std::string& name, const std::vector<lowering::Stage>& stages,
                               const lowering::Group& group, const std::set<std::string>& outputs,
                               const lowering::BufferTable& buffers, const Target& target);

}  // namespace tenon::schedule
