// pool.h — what a window sliding over each channel of an image sees, as one number: its greatest, its mean,
// its norm.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"
#include "ops/window.h"

namespace tenon {

const Family& pool_ops();

// x: [batch, channels, …]; the kernel has a size for each dimension after these.
Value max_pool(Value x, const std::vector<int64_t>& kernel, const WindowOptions& window = {});
Value average_pool(Value x, const std::vector<int64_t>& kernel, const WindowOptions& window = {});

}  // namespace tenon
