// model.h — what a tenon_model is.
#pragma once

#include "api/port.h"

struct tenon_model {
  explicit tenon_model(std::unique_ptr<tenon::Graph> graph);

  std::unique_ptr<tenon::Graph> graph;
  tenon::api::Ports inputs, outputs;
  std::vector<std::string> dimensions;  // that inputs name, sorted
};

namespace tenon::api {

// The graph with this size for a dimension that inputs name.
std::unique_ptr<Graph> bind_dimension(const Graph& graph, const std::string& dimension, int64_t size);

}  // namespace tenon::api
