// made_up.h — models run on inputs that nobody gave.
#pragma once

#include "verify/hint_at_inputs.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {

// Notes which sizes of the inputs nobody gave: where the inputs are made up they are 1, so that what is
// measured may be much less than the model is for.
void note_open_sizes(const Graph& graph);

// Runs `work` on inputs of the graph that were made up. An error is told with a hint at that.
template <class Work>
auto with_made_up_inputs(const Graph& graph, Work&& work) {
  return hint_at_inputs("were made up", dims_to_bind(graph), [&] { return work(sample_inputs(graph)); });
}

}  // namespace tenon::cli
