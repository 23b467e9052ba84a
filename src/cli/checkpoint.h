// checkpoint.h — the state of a training in an .npz, to resume from.
#pragma once

#include <limits>

#include "autodiff/training_step.h"
#include "tensor/npy.h"

namespace tenon::cli {

// What the steps are that follow, besides the state.
struct TrainingPlan {
  int64_t seed = 0, batch = 0, examples = 0;
  friend bool operator==(const TrainingPlan&, const TrainingPlan&) = default;
};

struct Checkpoint {
  std::vector<Tensor> state = {};  // as that of the step
  TrainingPlan plan = {};
  double loss = 0;                                        // the sum over …
  int64_t of_steps = 0;                                   // … steps since the loss was last said
  double best = std::numeric_limits<double>::infinity();  // loss on the examples of --validate
};

// Whole or not at all.
void write_checkpoint(const std::string& path, const TrainingStep& step, const Checkpoint& checkpoint);
// One of another model or optimiser is the user's fault.
Checkpoint read_checkpoint(const std::string& path, const TrainingStep& step);

}  // namespace tenon::cli
