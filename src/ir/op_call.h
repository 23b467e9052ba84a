// op_call.h — a node taken out of its graph: op, attributes, types and nested graphs, without the nodes
// around it. Programs hold such for what runs on the host.
#pragma once

#include "ir/evaluate.h"

namespace tenon {

class OpCall {
 public:
  explicit OpCall(const Node& node);
  virtual ~OpCall() = default;

  // What the op's eval makes of these operands. Virtual, so that a runtime without ops, which holds none, is
  // not linked with what evaluates them.
  virtual Data eval(std::span<const Datum> operands, RandomGenerator& random,
                    const Call::RunRegion* run_region) const;

  // In a graph of its own, whose inputs are the operands.
  const Node& node() const { return *node_; }

 private:
  std::shared_ptr<const Graph> graph_;
  const Node* node_;
};

}  // namespace tenon
