// convolve.h — convolutions over any number of spatial dimensions.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& convolve_ops();

}  // namespace tenon
