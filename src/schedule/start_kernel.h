// start_kernel.h — the kernel of some stages without its loops, for any device.
#pragma once

#include "loops/kernel.h"
#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// Inputs, in the order in which the stages first use them, outputs and combines; no body.
loops::Kernel start_kernel(const std::string& name, const std::vector<lowering::Stage>& stages,
                           const std::set<std::string>& outputs, const lowering::BufferTable& buffers);

}  // namespace tenon::schedule
