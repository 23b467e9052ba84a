// sliding_windows.h — reductions over small windows, as of depthwise convolutions and pooling: a thread has
// several results one below the other, and loads what their windows share once, into registers.
#pragma once

#include <set>

#include "lowering/kernel_graph.h"
#include "target/gpu.h"

namespace tenon::schedule::cuda {

// Whether it reduces small windows that share elements with those of other results.
bool has_overlapping_windows(const loops::Definition& definition);

// False where the first stage reduces more than a small window: nothing has changed then.
bool slide_windows(loops::Kernel& kernel, const std::vector<lowering::Stage>& stages,
                   const std::set<std::string>& outputs, const Gpu& gpu);

}  // namespace tenon::schedule::cuda
