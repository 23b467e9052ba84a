// heads.h — the heads of attention: side by side in one dimension, or in one of their own.
#pragma once

#include "frontends/onnx/node_view.h"

namespace tenon::onnx {

// [batch, sequence, heads · size] as [batch, heads, sequence, size], and back.
Value split_heads(const NodeView& n, Value x, int64_t heads);
Value merge_heads(Value x);

// 1 / sqrt(size) of q, [batch, heads, sequence, size]; where the size is not known, q is divided by its root
// instead.
double default_scale(Value& q);

}  // namespace tenon::onnx
