// sort.h — ops that order or select elements by their value, so that how many come out, or from where, is
// dynamic.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& sort_ops();

// values and indices
std::vector<Value> top_k(Value x, Value k, int64_t axis, bool largest = true, bool sorted = true);
// y, indices, inverse and counts
std::vector<Value> unique(Value x, int64_t axis, bool sorted = true);
Value nonzero(Value x);
Value one_hot(Value indices, Value depth, Value values, int64_t axis);

}  // namespace tenon
