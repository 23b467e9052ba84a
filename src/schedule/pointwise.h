// pointwise.h — the iteration of a pointwise kernel, for any device: what its statements are, and over how
// few axes it can be counted.
#pragma once

#include "loops/definition.h"
#include "lowering/kernel_graph.h"

namespace tenon::schedule {

struct PointwiseIteration {
  std::vector<loops::Axis> axes;
  std::vector<loops::Statement> body;  // assignments to outputs; other results are inlined
};

PointwiseIteration pointwise_iteration(const std::vector<lowering::Stage>& stages,
                                       const std::set<std::string>& outputs);

// Axes that every buffer of the kernel has adjacent, and nothing else tells apart, become one, in the
// kernel's inputs and outputs too.
void collapse_axes(PointwiseIteration& iteration, loops::Kernel& kernel);

}  // namespace tenon::schedule
