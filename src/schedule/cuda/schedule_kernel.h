// schedule_kernel.h — the loops of a kernel, arranged for a GPU: what the backend's table names.
#pragma once

#include "loops/kernel.h"
#include "lowering/kernel_graph.h"
#include "schedule/context.h"

namespace tenon::schedule::cuda {

// As schedule/cpu/schedule_kernel.h.
loops::Kernel schedule_kernel(const std::vector<lowering::Stage>& stages, const lowering::Group& group,
                              const std::set<std::string>& outputs, const lowering::BufferTable& buffers,
                              const Context& context);

// Whether rows are those of a product, x wᵀ say: one sum for each, and what is computed of it.
bool is_sum_with_epilogue(const std::vector<lowering::Stage>& stages, size_t rows);

// Of a kernel that an op wrote itself: parallel iterations are those of threads.
loops::Kernel schedule_nest(const loops::Kernel& nest);

}  // namespace tenon::schedule::cuda
