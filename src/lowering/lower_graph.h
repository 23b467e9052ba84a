// lower_graph.h — the nodes of a graph as steps of a program, before any are fused.
#pragma once

#include "ir/graph.h"
#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// What an item stands for that is no stage.
struct Opaque {
  enum class Kind : uint8_t { Host, Alias, Nest } kind;
  const Node* node = nullptr;
  std::vector<loops::Statement> nest = {};
};

// Weights of a Winograd convolution.
struct TransformedWeights {
  std::string weights;
  int64_t tile;
};

// Packed weights.
struct PackedWeights {
  std::string weights;
  PackedBLayout order;
  bool split = false;  // into three bf16 (see bf16x3_matmul.h)
};

struct LoweredGraph {
  std::vector<Item> items;
  std::map<size_t, Opaque> opaque;               // by item
  std::map<std::string, loops::Buffer> buffers;  // that kernels may read or write
  std::map<std::string, Value> values;           // of slots that are values of the graph
  std::map<const ValueData*, std::string> names;
  std::map<std::string, std::vector<size_t>> orders;  // of constants with permuted dimensions
  std::map<std::string, TransformedWeights> transformed;
  std::map<std::string, PackedWeights> packed;
  std::set<std::string> refusing;  // sources of stages that fail for some elements, as an index out of range

  // Whether a buffer holds a constant of the graph.
  bool is_constant(const std::string& buffer) const;
};

LoweredGraph lower_graph(const Graph& graph);

}  // namespace tenon::lowering
