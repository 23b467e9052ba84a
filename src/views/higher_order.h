// higher_order.h — control flow as PyTorch's higher-order ops take it: cond, while_loop and scan, with graphs
// of their own.
#pragma once

#include <memory>
#include <optional>

#include "ir/graph.h"

namespace tenon {

// What a graph that is handed to an op gives back: a value, or all of its values.
enum class Returns : uint8_t { Value, Tuple, List };

struct HandedGraph {
  std::string name;  // as PyTorch calls it: while_loop_cond_graph
  std::shared_ptr<const Graph> graph;
  Returns returns = Returns::Tuple;
};

// One that the node keeps.
inline std::shared_ptr<const Graph> borrow(const Graph& graph) {
  return {std::shared_ptr<const Graph>(), &graph};
}

// A constant, or a value from where the op stands.
struct Start {
  Value value = {};
  std::optional<Attribute> constant = std::nullopt;
};

struct HigherOrderCall {
  std::string_view op;  // cond
  std::vector<HandedGraph> graphs = {};
  Value condition = {};                       // of cond
  std::vector<Start> carried = {};            // of while_loop and scan
  std::vector<Value> scanned = {};            // of scan, or …
  std::optional<Start> count = std::nullopt;  // … how many numbers from 0 on it goes through
  std::vector<Value> captured = {};           // what the graphs take besides
  int64_t first_result = 0;                   // which of what it gives is the node's first result
};

// Nothing for a node that is no control flow, or that PyTorch's ops cannot tell: a loop that carries
// sequences, or one that ends on a condition and yet collects values.
std::optional<HigherOrderCall> higher_order_call(const Node& node);

}  // namespace tenon
