// block_rows.h — row-wise fused stages (softmax, norms and what surrounds them) by a thread block, or a part
// of a warp, for each row. What stages exchange stays in registers or shared memory.
#pragma once

#include "loops/kernel.h"
#include "lowering/kernel_graph.h"
#include "target/gpu.h"

namespace tenon::schedule::cuda {

// Gives the kernel its body. The stages share so many axes; `length` is that of the longest row, if it is
// known.
void block_rows(loops::Kernel& kernel, const std::vector<lowering::Stage>& stages, size_t shared,
                const std::set<std::string>& outputs, std::optional<int64_t> length, const Gpu& gpu);

// Whether a cluster of thread blocks holds a row of this length in its registers.
bool fits_cluster(int64_t length, const Gpu& gpu);

}  // namespace tenon::schedule::cuda
