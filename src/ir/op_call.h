// op_call.h — a node taken out of its graph: op, attributes, types and nested graphs, without the nodes
// around it. Programs hold such for what runs on the host.
#pragma once

#include "ir/graph.h"

namespace tenon {

class OpCall {
 public:
  explicit OpCall(const Node& node);

  // In a graph of its own, whose inputs are the operands.
  const Node& node() const { return *node_; }

 private:
  std::shared_ptr<const Graph> graph_;
  const Node* node_;
};

}  // namespace tenon
