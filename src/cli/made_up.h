// made_up.h — models run on inputs that nobody gave.
#pragma once

#include "base/error.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {

// Notes which sizes of the inputs nobody gave: where the inputs are made up they are 1, so that what is
// measured may be much less than the model is for.
void note_open_sizes(const Graph& graph);

// Runs `work` on inputs of the graph that were made up, which not every model takes: token ids must be small,
// say. An error is told with a hint at that.
template <class Work>
auto with_made_up_inputs(const Graph& graph, Work&& work) {
  try {
    return work(sample_inputs(graph));
  } catch (const UnsupportedError&) {
    throw;
  } catch (const UserError& error) {
    const std::string dims = dims_to_bind(graph);
    throw user_error("{}\n  hint: the inputs were made up; give your own with --inputs{}", error.what(),
                     dims.empty() ? "" : ", or sizes with " + dims);
  }
}

}  // namespace tenon::cli
