// convolve.h — convolutions over any number of spatial dimensions.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"
#include "ops/window.h"

namespace tenon {

const Family& convolve_ops();

// x: [batch, channels, …], w: [filters, channels / groups, kernel…]; for the transposed one
// [channels, filters / groups, kernel…].
Value conv(Value x, Value w, const WindowOptions& window = {}, int64_t groups = 1);
Value conv_transpose(Value x, Value w, const WindowOptions& window = {}, int64_t groups = 1);

}  // namespace tenon
