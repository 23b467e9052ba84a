// model.h — what a tenon_model is.
#pragma once

#include "api/port.h"
#include "optimizer/source.h"
#include "rewrite/journal.h"

struct tenon_model {
  tenon_model(std::unique_ptr<tenon::Graph> graph, std::optional<tenon::optimizer::Source> source);

  std::unique_ptr<tenon::Graph> graph;
  std::optional<tenon::optimizer::Source> source;  // where it is an ONNX file
  tenon::api::Ports inputs, outputs;
  std::vector<std::string> dimensions;  // that inputs name, sorted
};

namespace tenon::api {

NumericsBudget numerics_of(int64_t numerics);  // a tenon_numerics

// The names of dimensions that inputs have, sorted.
std::vector<std::string> dimensions_of(const Graph& graph);

// The graph with this size for a dimension that inputs name.
std::unique_ptr<Graph> bind_dimension(const Graph& graph, const std::string& dimension, int64_t size);

}  // namespace tenon::api
