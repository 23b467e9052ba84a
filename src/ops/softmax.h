// softmax.h — scores along an axis made into a distribution: softmax, its logarithm, and its hard form.
#pragma once

#include <span>

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& softmax_ops();

// What eval does to one lane: exp(x - max) / sum, each step rounded to `dtype` if that has 16 bits or fewer.
void apply_softmax(std::span<double> lane, DType dtype);

Value softmax(Value x, int64_t axis);
Value log_softmax(Value x, int64_t axis);

}  // namespace tenon
