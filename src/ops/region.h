// region.h — regions of images pooled to one size each: roi_align, max_roi_pool.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& region_ops();

}  // namespace tenon
