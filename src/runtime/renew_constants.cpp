// renew_constants.cpp — constants made anew of weights that vary, which those of a saved program do not: what
// only runs such programs is not linked with what packs weights.
#include "runtime/executor_state.h"

namespace tenon::runtime {

void Executor::renew_constants() {
  if (has_varying_weights(*program_)) {
    std::vector<Tensor> renewed = constants_;  // where one cannot be made, those that are stay
    runtime::renew_constants(*program_, device_, renewed);
    constants_ = std::move(renewed);
    if (device_memory_ != nullptr)
      device_constants_ = upload_constants(*program_, constants_, *device_);
    states_.clear();  // they know where the constants were
  }
  for (const auto& [program, executor] : regions_)
    executor->renew_constants();
  if (hot_sizes_)
    hot_sizes_->renew_constants();
}

void HotSizes::renew_constants() {
  const std::lock_guard lock(mutex_);
  for (const std::unique_ptr<Known>& each : known_)
    if (each->program)
      each->program->renew_constants();
}

}  // namespace tenon::runtime
