// bands.h — the loops of kernels that run band by band.
#pragma once

#include "fusion/stage.h"
#include "loops/kernel.h"

namespace tenon {

// The kernel that computes the parts of a group of bands (fusion/bands.h) one after the other for each band.
// What they make for each other it keeps to itself.
loops::Kernel build_bands(const std::string& name, const std::vector<Stage>& stages, const Group& group,
                          const std::map<std::string, loops::Buffer>& buffers, const Target& target);

}  // namespace tenon
