#include "ir/lint.h"

#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "ir/infer.h"

namespace tenon {
namespace {

class Linter {
 public:
  std::vector<std::string> problems;

  void graph(const Graph& graph, bool outermost) {
    std::unordered_map<const ValueData*, int64_t> uses;  // as the operands count them
    std::unordered_set<const ValueData*> made;
    std::vector<const ValueData*> in_order;
    std::unordered_set<std::string> input_names;
    for (Value input : graph.inputs()) {
      made.insert(input.data());
      in_order.push_back(input.data());
      // Users feed the outermost inputs by name.
      if (outermost && !input.name().empty() && !input_names.insert(input.name()).second)
        problem("graph {}: two inputs are named {}", graph.name(), input.name());
    }
    const auto operands = [&](const Node& node) {
      for (Value operand : node.operands()) {
        if (!made.contains(operand.data()))
          problem("{}: {} uses a value before it is made, or from another graph", node.describe(),
                  node.op().name);
        ++uses[operand.data()];
      }
    };
    for (const Node* node : graph.nodes()) {
      if (&node->graph() != &graph)
        problem("{}: belongs to another graph", node->describe());
      operands(*node);
      types(*node);
      for (Value result : node->results()) {
        made.insert(result.data());
        in_order.push_back(result.data());
      }
      for (const auto& region : node->regions())
        this->graph(*region, false);
    }
    operands(*graph.return_node());
    if (graph.output_names().size() != graph.outputs().size())
      problem("graph {}: {} names for {} outputs", graph.name(), graph.output_names().size(),
              graph.outputs().size());
    for (const ValueData* data : in_order) {
      if (data->use_count != uses[data])
        problem("value %{}: {} uses are recorded, but {} operands use it", data->name, data->use_count,
                uses[data]);
    }
  }

 private:
  template <class... Args>
  void problem(fmt::format_string<Args...> format, Args&&... args) {
    problems.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void types(const Node& node) {
    try {
      check_against_declaration(node);
      const Types inferred = infer_types(node);
      if (static_cast<int64_t>(inferred.size()) != node.result_count()) {
        problem("{}: {} has {} results, but inference gives {}", node.describe(), node.op().name,
                node.result_count(), inferred.size());
        return;
      }
      for (int64_t i = 0; i < node.result_count(); ++i)
        if (const Type& type = node.result(i).type(); !refines(type, inferred[static_cast<size_t>(i)]))
          problem("{}: {}: result {} is {}, but inference gives {}", node.describe(), node.op().name, i, type,
                  inferred[static_cast<size_t>(i)]);
    } catch (const std::exception& error) {
      problem("{}: {}", node.describe(), error.what());
    }
  }
};

}  // namespace

std::vector<std::string> lint(const Graph& graph) {
  Linter linter;
  linter.graph(graph, true);
  return linter.problems;
}

}  // namespace tenon
