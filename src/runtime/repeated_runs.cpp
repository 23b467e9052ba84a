#include "runtime/repeated_runs.h"

#include <algorithm>
#include <limits>

#include "runtime/program_state.h"

namespace tenon::runtime {

Program::Runs::Runs(const Program& program, const Data& inputs, const RunOptions& options)
    : program_(program), bindings_(bind_inputs(program.graph(), inputs)), state_(program.acquire()) {
  state_->options = options;
  state_->layout = program.layout_for(bindings_);
  state_->bindings = bindings_;
}

Program::Runs::~Runs() { program_.release(std::move(state_)); }

int64_t Program::Runs::work() const {
  int64_t work = 0;
  for (size_t i = 0; i < program_.steps_.size(); ++i)
    if (std::holds_alternative<KernelStep>(program_.steps_[i]))
      if (const std::optional<Launch> launch = program_.planner_.launch_of(i, *state_->layout))
        work += std::min(launch->work(), std::numeric_limits<int64_t>::max() - work);
  return work;
}

void Program::Runs::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  state_->input_memory = inputs;
  state_->output_memory = outputs;
  if (state_->bindings.size() != bindings_.size())
    state_->bindings = bindings_;
  program_.run_steps(*state_);
  program_.copy_outputs(*state_);
}

}  // namespace tenon::runtime
