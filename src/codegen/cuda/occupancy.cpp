#include "codegen/cuda/occupancy.h"

#include <algorithm>

#include "codegen/cuda/emit.h"

namespace tenon::codegen::cuda {

int64_t blocks_per_multiprocessor(const loops::Kernel& kernel, const Gpu& gpu) {
  int64_t fewest = INT64_MAX;
  for (const loops::ParallelRegion& region : loops::parallel_regions_of(kernel)) {
    const runtime::LaunchConfiguration shape = shape_of(region);
    const std::optional<int64_t> bytes = shared_bytes(region).constant();
    const int64_t blocks =
        bytes ? tenon::blocks_per_multiprocessor(gpu, shape.threads, *bytes * shape.iterations_per_block) : 0;
    // A block that stays loads for one iteration while it computes another, as several blocks would.
    fewest = std::min(fewest, shape.is_persistent ? blocks * region.parallel.front().stages : blocks);
  }
  return fewest;
}

}  // namespace tenon::codegen::cuda
