// overlay.h — a tensor with rows of another laid over some of its own: what putting rows where indices say
// becomes once it is known which row comes to each place.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& overlay_ops();

Value overlay(Value x, Value updates, Value sources, int64_t axis);

}  // namespace tenon
