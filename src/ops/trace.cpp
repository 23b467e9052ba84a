#include "ops/trace.h"

#include "ops/registry.h"

namespace tenon::tracing {

std::vector<Value> add_inputs(Graph& graph, const TracedInputs& inputs) {
  register_ops();
  std::vector<Value> values;
  for (const TracedInput& input : inputs) {
    std::string name = input.name;
    if (name.empty())
      name = inputs.size() == 1 ? "x" : fmt::format("x{}", values.size());
    values.push_back(graph.add_input(input.type, std::move(name)));
  }
  return values;
}

void set_outputs(Graph& graph, const std::vector<Value>& outputs) {
  std::vector<std::string> names;
  for (Value output : outputs) {
    if (!output.name().empty())
      names.push_back(output.name());
    else
      names.push_back(outputs.size() == 1 ? "output" : fmt::format("output_{}", names.size()));
  }
  graph.set_outputs(outputs, std::move(names));
}

}  // namespace tenon::tracing
