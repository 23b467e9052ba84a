// warpgroups.h — which GPUs have instructions by which four warps multiply matrices in shared memory (wgmma).
#pragma once

#include "target/gpu.h"

namespace tenon {

// Hopper's alone.
inline bool has_warpgroup_products(const Gpu& gpu) { return gpu.architecture == 90; }

}  // namespace tenon
