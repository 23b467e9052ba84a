// softmax.h — scores along an axis made into a distribution: softmax, its logarithm, and its hard form.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& softmax_ops();

Value softmax(Value x, int64_t axis);
Value log_softmax(Value x, int64_t axis);

}  // namespace tenon
