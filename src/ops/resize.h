// resize.h — a tensor with more or fewer elements along some of its dimensions, interpolated.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& resize_ops();

}  // namespace tenon
