// cut_out.h — what flows through a graph, and a part of a graph as a graph of its own, with what flows into
// it.
#pragma once

#include <unordered_map>

#include "ir/evaluate.h"

namespace tenon {

using RecordedValues = std::unordered_map<const ValueData*, Datum>;

// What every value of the graph is when it runs on `inputs`, nested graphs apart.
RecordedValues record_values(const Graph& graph, const Data& inputs, const EvaluateOptions& options = {});

struct Piece {
  std::unique_ptr<Graph> graph;
  Data inputs;
};

// `node` and what it depends on up to `depth` steps away, constants besides. What lies farther becomes an
// input, and `inputs` holds what was recorded for it.
Piece cut_out(const Graph& graph, const Node& node, int64_t depth, const RecordedValues& recorded);

}  // namespace tenon
