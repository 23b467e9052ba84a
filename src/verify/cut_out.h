// cut_out.h — a part of a graph as a graph of its own, with what flows into it.
#pragma once

#include "ir/evaluate.h"

namespace tenon {

struct Cut {
  std::unique_ptr<Graph> graph;
  Data inputs;
};

// `node` and what it depends on up to `depth` steps away, constants besides. What lies farther becomes an
// input, and `inputs` holds what it is when the whole graph runs on `graph_inputs`.
Cut cut_out(const Graph& graph, const Node& node, int64_t depth, const Data& graph_inputs);

}  // namespace tenon
