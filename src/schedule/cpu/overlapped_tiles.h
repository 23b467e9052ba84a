// overlapped_tiles.h — the loops of overlapped tiling.
#pragma once

#include "loops/kernel.h"
#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// The kernel that runs the parts of a tiled group (fusion/overlapped_tiles.h) in sequence for each tile, with
// intermediate results in local buffers.
loops::Kernel build_overlapped_tiles(const std::string& name, const std::vector<lowering::Stage>& stages,
                                     const lowering::Group& group, const lowering::BufferTable& buffers,
                                     const Target& target);

}  // namespace tenon::schedule
