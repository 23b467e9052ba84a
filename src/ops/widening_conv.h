// widening_conv.h — convolutions of bytes whose sums are wider: programs compute those of quantised images
// so.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"
#include "ops/window.h"

namespace tenon {

const Family& widening_conv_ops();

struct WideningConvolution {
  Window window;  // with explicit padding
  int64_t groups = 1;
  int64_t border = 0;  // the byte that stands around x
};

// Filters of bytes or f32: [filters, channels / groups, kernel…].
Value widening_conv(Value x, Value w, DType accumulator, const WideningConvolution& how);

}  // namespace tenon
