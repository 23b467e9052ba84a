// image.h — images put together from samples and blocks: grid_sample, affine_grid, col2im.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& image_ops();

}  // namespace tenon
