#include "verify/tolerances.h"

#include <algorithm>
#include <unordered_map>

#include "tensor/rounding.h"

namespace tenon {
namespace {

// What the node itself rounds its result to; 0 where it only moves data, or gives no floats.
double own_step(const Node& node, Value result) {
  const bool rounds =
      node.op().category == Category::Compute && result.type().is_tensor() && info(result.dtype()).bits > 8;
  return rounds ? rounding_step(result.dtype()) : 0;
}

// The widest rounding step on the way to any output of a nested graph, whatever comes in.
double widest_step(const Graph& graph);

// The widest rounding step on the way to each value.
std::unordered_map<const ValueData*, double> widest_steps(const Graph& graph) {
  std::unordered_map<const ValueData*, double> steps;
  for (const Node* node : graph.nodes()) {
    double before = 0;
    for (Value operand : node->operands())
      before = std::max(before, steps[operand.data()]);
    for (const auto& region : node->regions())
      before = std::max(before, widest_step(*region));
    for (Value result : node->results())
      steps[result.data()] = std::max(before, own_step(*node, result));
  }
  return steps;
}

double widest_step(const Graph& graph) {
  double widest = 0;
  for (const auto& [value, step] : widest_steps(graph))
    widest = std::max(widest, step);
  return widest;
}

}  // namespace

std::vector<double> tolerances_of(const Graph& model, double tolerance) {
  const std::unordered_map<const ValueData*, double> steps = widest_steps(model);
  std::vector<double> tolerances;
  for (Value output : model.outputs()) {
    const auto step = steps.find(output.data());  // an input has none
    tolerances.push_back(step == steps.end() ? tolerance
                                             : std::max(tolerance, kRoundingSteps * step->second));
  }
  return tolerances;
}

}  // namespace tenon
