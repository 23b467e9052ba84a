// order.h — the order in which a graph's nodes are imported.
#pragma once

#include <string>
#include <vector>

#include "frontends/onnx/proto.h"

namespace tenon::onnx {

// How an error speaks of a node: by its name, or by what it makes where it has none.
std::string node_label(const NodeProto& node);

// The nodes in an order in which each comes after those it needs; the given order where that will do. A node
// that needs its own result is the user's fault.
std::vector<const NodeProto*> in_order(const std::vector<NodeProto>& nodes);

}  // namespace tenon::onnx
