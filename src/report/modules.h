// modules.h — which module of the user's model a node belongs to, as a path: encoder/layer.0/attention.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Gives every node that has no name in the user's model one to be known by: how it is printed, and its op, as
// in "%7 conv".
void name_nodes(Graph& as_read);

// What names of nodes and parameters say. A node of ONNX is called after the modules around it
// (/encoder/layer.0/MatMul), one of PyTorch after its module (encoder.layer.0/linear). Where names hold no
// modules, a node belongs to that of its parameters (encoder.layer.0.weight); one without any, to what the
// modules before and after it have in common.
class Modules {
 public:
  explicit Modules(const Graph& as_read);

  // Empty at the top level. Of several nodes, what their modules have in common.
  std::string of(const std::vector<std::string>& sources) const;

 private:
  void add(const Graph& graph);

  std::map<std::string, std::string, std::less<>> modules_;  // by the names of nodes
};

// The first components of a path that are also those of another.
std::string common_module(std::string_view a, std::string_view b);
// At most so many components of it.
std::string cut_module(std::string_view module, size_t depth);

}  // namespace tenon
