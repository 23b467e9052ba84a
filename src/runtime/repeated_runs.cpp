#include "runtime/repeated_runs.h"

#include <algorithm>
#include <limits>

#include "runtime/executor_state.h"

namespace tenon::runtime {

Executor::Runs::Runs(const Executor& executor, const Data& inputs, const RunOptions& options)
    : executor_(executor),
      bindings_(bind_inputs(executor.program().name, executor.program().inputs, inputs)),
      state_(executor.acquire()) {
  state_->options = options;
  state_->layout = executor.layout_for(bindings_);
  state_->bindings = bindings_;
}

Executor::Runs::~Runs() {
  if (!has_failed_)  // what a failed run leaves is not for another
    executor_.release(std::move(state_));
}

int64_t Executor::Runs::work() const {
  int64_t work = 0;
  for (size_t i = 0; i < executor_.steps_.size(); ++i)
    if (std::holds_alternative<KernelStep>(executor_.steps_[i]))
      if (const std::optional<Launch> launch = executor_.planner_.launch_of(i, *state_->layout))
        work += std::min(launch->work(), std::numeric_limits<int64_t>::max() - work);
  return work;
}

void Executor::Runs::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  state_->input_memory = inputs;
  state_->output_memory = outputs;
  if (state_->bindings.size() != bindings_.size())
    state_->bindings = bindings_;
  has_failed_ = true;
  executor_.run_steps(*state_);
  executor_.copy_outputs(*state_);
  has_failed_ = false;
}

}  // namespace tenon::runtime
