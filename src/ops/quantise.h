// quantise.h — numbers stored as small integers or floats with a scale: quantize, dequantize,
// dynamic_quantize.
//
// A scale (and the zero point beside it, of the same shape) is for the whole tensor when it is one number,
// for each step along an axis when it is a vector, or for each block of steps along an axis when block_size
// is set.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& quantise_ops();

struct Granularity {
  int64_t axis = 1;
  int64_t block_size = 0;
};

// An empty zero point is 0.
Value quantize(Value x, Value scale, Value zero_point, DType to, Granularity granularity = {});
Value dequantize(Value x, Value scale, Value zero_point, DType to, Granularity granularity = {});

}  // namespace tenon
