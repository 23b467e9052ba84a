// occupancy.h — how many thread blocks of a kernel a multiprocessor runs at once.
#pragma once

#include "loops/kernel.h"
#include "target/gpu.h"

namespace tenon::codegen::cuda {

// Of the region with the fewest, by its threads and its shared memory; how many registers it needs is known
// when it is compiled. 0 where a block may not have so much shared memory, or where that depends on sizes.
int64_t blocks_per_multiprocessor(const loops::Kernel& kernel, const Gpu& gpu);

}  // namespace tenon::codegen::cuda
