// shrink.h — graphs with inputs that show a fault, made as small as they still show it.
#pragma once

#include <functional>

#include "fuzz/growing_graph.h"
#include "ir/evaluate.h"
#include "passes/passes.h"

namespace tenon::fuzz {

inline std::set<std::string> symbols_of_inputs(const Graph& graph) {
  std::set<std::string> symbols;
  for (Value input : graph.inputs())
    for (const std::string& symbol : symbols_of(input.type()))
      symbols.insert(symbol);
  return symbols;
}

// A grown graph, and the same for some sizes of its symbols, if it makes sense for these.
inline std::vector<std::unique_ptr<Graph>> graphs_of(GrowingGraph& random) {
  std::vector<std::unique_ptr<Graph>> graphs;
  graphs.push_back(random.make());
  try {
    std::unique_ptr<Graph> bound = graphs.front()->bind(random.random_dims());
    if (!symbols_of_inputs(*graphs.front()).empty())
      graphs.push_back(std::move(bound));
  } catch (const UserError&) {
    // It does not.
  }
  return graphs;
}

struct Case {
  std::unique_ptr<Graph> graph;
  std::vector<Data> draws;  // of inputs
};

inline void drop_unused(Case& c) {
  Journal journal;
  remove_dead(*c.graph, journal);
  for (int64_t i = c.graph->input_count() - 1; i >= 0; --i)
    if (c.graph->input(i).use_count() == 0) {
      c.graph->erase_input(i);
      for (Data& draw : c.draws)
        draw.erase(draw.begin() + i);
    }
}

inline Case with_output(const Case& c, size_t output) {
  Case smaller{c.graph->clone(), c.draws};
  smaller.graph->set_outputs({smaller.graph->outputs()[output]});
  drop_unused(smaller);
  return smaller;
}

// An input takes the place of what a node computes. A user_error where that cannot run.
inline Case without_node(const Case& c, size_t index) {
  Case smaller{c.graph->clone(), c.draws};
  const Node* node = smaller.graph->nodes()[index];
  const std::unique_ptr<Graph> up_to = c.graph->clone();
  up_to->set_outputs(up_to->nodes()[index]->results());
  for (Data& draw : smaller.draws)
    for (const Datum& datum : evaluate(*up_to, Data(draw)))
      draw.push_back(datum);
  for (Value result : node->results())
    result.replace_all_uses(smaller.graph->add_input(result.type(), ""));
  drop_unused(smaller);
  return smaller;
}

// Makes the case smaller as long as it still fails.
inline void shrink(Case& c, const std::function<bool(const Case&)>& fails) {
  for (size_t output = 0; output < c.graph->outputs().size(); ++output)
    if (Case smaller = with_output(c, output); fails(smaller)) {
      c = std::move(smaller);
      break;
    }
  for (size_t i = 0; i < c.draws.size(); ++i)
    if (Case smaller{c.graph->clone(), {c.draws[i]}}; fails(smaller)) {
      c = std::move(smaller);
      break;
    }
  for (size_t node = c.graph->nodes().size(); node-- > 0;) {
    try {
      if (node < c.graph->nodes().size())
        if (Case smaller = without_node(c, node); fails(smaller))
          c = std::move(smaller);
    } catch (const UserError&) {
      // It cannot do without.
    }
  }
}

}  // namespace tenon::fuzz
