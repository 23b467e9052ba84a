// repeated_runs.h — sequential runs of a program with inputs of the same sizes, such as the iterations of a
// loop. What follows from the sizes is looked up once, and a run of kernels alone allocates nothing.
#pragma once

#include "runtime/executor.h"

namespace tenon::runtime {

class Executor::Runs {
 public:
  // `inputs` have the sizes of those to come; the sizes of all outputs must follow from them.
  Runs(const Executor& executor, const Data& inputs, const RunOptions& options);
  ~Runs();

  // About how many elements the kernels of a run compute, as far as that is known.
  int64_t work() const;

  // The memory is not checked; no output may overlap another or an input.
  void run(std::span<const void* const> inputs, std::span<void* const> outputs);

 private:
  const Executor& executor_;
  Bindings bindings_;  // before a run finds out more
  bool has_failed_ = false;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::runtime
