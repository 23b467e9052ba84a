// overlapped_tiles.h — the loops of kernels that run tile by tile.
#pragma once

#include "loops/kernel.h"
#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// The kernel that computes the parts of a group of tiles (fusion/overlapped_tiles.h) one after the other for
// each tile. What they make for each other it keeps to itself.
loops::Kernel build_overlapped_tiles(const std::string& name, const std::vector<lowering::Stage>& stages,
                                     const lowering::Group& group,
                                     const std::map<std::string, loops::Buffer>& buffers,
                                     const Target& target);

}  // namespace tenon::schedule
