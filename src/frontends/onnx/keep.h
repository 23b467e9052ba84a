// keep.h — nodes that come in as they are, so that they can be written again in one op.
#pragma once

#include "frontends/onnx/node_view.h"

namespace tenon::onnx {

// A node of the graph's that stands for `n`, whose conversion made these values. Those themselves where it
// cannot be kept: it has nested graphs, or not only tensors, or attributes of the function around it.
std::vector<Value> kept_or(const NodeView& n, const std::vector<Value>& converted);

}  // namespace tenon::onnx
