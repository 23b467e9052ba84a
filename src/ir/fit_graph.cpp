// fit_graph.cpp — the same of the inputs of a graph: a runtime without graphs is not linked with it.
#include "ir/fit.h"

namespace tenon {

std::vector<InputPort> inputs_of(const Graph& graph) {
  std::vector<InputPort> ports;
  for (Value input : graph.inputs())
    ports.push_back({input.name(), input.type(), input.use_count() > 0});
  return ports;
}

Bindings bind_inputs(const Graph& graph, const Data& inputs) {
  return bind_inputs(graph.name(), inputs_of(graph), inputs);
}

}  // namespace tenon
