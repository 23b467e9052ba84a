// layer.h — layers worth seeing as one thing: composites that users write by name.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& layer_ops();

Value linear(Value x, Value weight, Value bias = {});  // an empty bias is none

}  // namespace tenon
