#include "frontends/torch/gradient.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "base/error.h"
#include "ops/generate.h"
#include "ops/gradient.h"
#include "ops/shapes.h"
#include "tensor/wide.h"

namespace tenon::torch {
namespace {

// Nodes that only the values of the forward op were made by.
void erase_unused(Graph& graph) {
  const std::vector<Node*> nodes = graph.nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node)
    if (std::ranges::all_of((*node)->results(), [](Value result) { return result.use_count() == 0; }))
      graph.erase(*node);
}

}  // namespace

std::vector<Value> gradients(const NodeView& n, const Convert& forward, const GradientInputs& inputs,
                             const std::vector<Value>& seeds) {
  const std::unique_ptr<Graph> graph = n.graph().make_region("gradient");
  const WithSources sources(*graph, n.graph().current_sources());
  Enclosure enclosure = {.graph = *graph};
  std::vector<Value> arguments, wanted;
  for (const auto& [name, value] : inputs) {
    const Value input = graph->add_input(value.type(), std::string(name));
    enclosure.tensors.emplace(name, input);
    arguments.push_back(value);
    if (is_differentiable(value.type()))
      wanted.push_back(input);
  }
  const std::vector<Value> results = forward(NodeView(n, enclosure));
  arguments.insert(arguments.end(), enclosure.captured.begin(), enclosure.captured.end());
  std::vector<Value> outputs, output_gradients;
  for (size_t i = 0; i < seeds.size() && i < results.size(); ++i)
    if (seeds[i] && results[i] && is_differentiable(results[i].type())) {
      outputs.push_back(results[i]);
      output_gradients.push_back(graph->add_input(seeds[i].type(), fmt::format("seed_{}", i)));
      arguments.push_back(seeds[i]);
    }
  graph->set_outputs(outputs);
  std::vector<Value> found = backpropagate(*graph, output_gradients, wanted);
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i])
      found[i] = zeros_like(wanted[i]);
  graph->set_outputs(found);
  erase_unused(*graph);
  const std::vector<Value> inlined = n.graph().inline_graph(*graph, arguments);
  std::vector<Value> all;
  size_t next = 0;
  for (const auto& [name, value] : inputs)
    all.push_back(is_differentiable(value.type()) ? inlined[next++] : Value());
  return all;
}

Convert gradient_of(Convert forward, std::string_view input, std::string_view seed) {
  return [=, forward = std::move(forward)](const NodeView& n) {
    return gradients(n, forward, {{input, n.tensor(input)}}, {n.tensor(seed)});
  };
}

Convert gradient_by_size_of(Convert forward, std::string_view input, std::string_view sizes) {
  return [=, forward = std::move(forward)](const NodeView& n) {
    const Value seed = n.tensor("grad_output");
    const Value any = fill(n.vector(n.sizes(sizes)), filled(seed.dtype(), {}, 0));
    return gradients(n, forward, {{input, any}}, {seed});
  };
}

std::vector<Value> wanted_gradients(const NodeView& n, std::vector<Value> gradients) {
  const std::vector<bool> wanted = n.flags("output_mask");
  if (wanted.size() != gradients.size())
    throw user_error("{}: output_mask has {} truths for {} gradients", n.op(), wanted.size(),
                     gradients.size());
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i])
      gradients[i] = Value();
  return gradients;
}

}  // namespace tenon::torch
