// gemv.h — products with few rows (GEMV, small M): every weight is loaded once, in vectors, and multiplied by
// all rows. Threads share out the sum and add their parts in a fixed order.
#pragma once

#include <set>

#include "lowering/kernel_graph.h"
#include "target/gpu.h"

namespace tenon::schedule::cuda {

// `buffers` are those that the factors read.
bool is_gemv(const loops::Definition& sum, const std::vector<loops::Buffer>& buffers);

// False where it is none, or where that is no gain: nothing has changed then.
bool gemv(loops::Kernel& kernel, const std::vector<lowering::Stage>& stages,
          const std::set<std::string>& outputs, const Gpu& gpu);

}  // namespace tenon::schedule::cuda
