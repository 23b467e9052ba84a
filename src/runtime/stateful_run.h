// stateful_run.h — runs a program again and again, each time on the state that the run before left.
//
// A next value is computed in the memory of the value it replaces where the program may do that
// (Program::overwritable). Others have two buffers, which swap roles after each run. So nothing is copied.
#pragma once

#include "runtime/executor.h"

namespace tenon::runtime {

class StatefulRun {
 public:
  struct Pair {
    size_t input, output;  // of the program
  };
  // The program must have fixed sizes. `initial` has a value for each pair.
  StatefulRun(std::shared_ptr<const Executor> executor, std::vector<Pair> state,
              const std::vector<Tensor>& initial);

  // Runs it on these inputs, those without the state; the outputs are those without the next values.
  Data run(const Data& inputs, const RunOptions& options);

  Tensor state(size_t number) const;             // a copy
  size_t in_place() const { return in_place_; }  // how many of the state

 private:
  std::shared_ptr<const Executor> executor_;
  std::vector<Pair> state_;
  std::vector<Tensor> current_;
  std::vector<Tensor> next_;  // without elements where the value is computed in place
  std::vector<bool> is_in_place_;
  size_t in_place_ = 0;
  std::vector<size_t> inputs_, outputs_;  // that are no state
};

}  // namespace tenon::runtime
