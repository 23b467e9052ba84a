// byte_convolve.h — convolutions of bytes: programs compute those of quantised images so.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"
#include "ops/window.h"

namespace tenon {

const Family& byte_convolve_ops();

struct ByteConvolution {
  Window window;  // with explicit padding
  int64_t groups = 1;
  int64_t border = 0;  // the byte that stands around x
};

// Filters of f32: [filters, channels / groups, kernel…].
Value conv_bytes(Value x, Value w, const ByteConvolution& how);
// The same of words of bytes with a sign, each for four channels: [filters, channels / groups / 4, kernel…].
Value conv_words(Value x, Value w, const ByteConvolution& how);

}  // namespace tenon
