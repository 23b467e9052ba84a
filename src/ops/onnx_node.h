// onnx_node.h — a node of an ONNX file that is kept as it came: ONNX says in one op what takes several of
// ours. It is written again, and computed by whoever reads that.
#pragma once

#include "ir/graph.h"
#include "ops/registry.h"

namespace tenon {

const Family& onnx_node_ops();

struct OnnxNode {
  std::string op;                    // after its domain: "PRelu", "com.microsoft.QLinearAdd"
  int64_t since = 1;                 // the versions of its domain that have it as it stands in the file
  int64_t until = 1;                 // likewise
  std::vector<int64_t> inputs = {};  // the operand that each is; -1 where one is left out
  std::vector<std::string> attributes = {};  // the bytes of each, name and value
};

// One result for each output, of these types.
std::vector<Value> keep_onnx_node(Graph& graph, const OnnxNode& node, const std::vector<Value>& operands,
                                  const Types& types);

OnnxNode onnx_node_of(const Node& node);

}  // namespace tenon
