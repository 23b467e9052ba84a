// program.h — compiled programs as Python calls them.
#pragma once

#include <nanobind/nanobind.h>

#include <shared_mutex>

#include "api/program.h"
#include "binding/tensors.h"
#include "compiler/compile_context.h"

namespace tenon::python {

// What a compiled program is called with: tensors where they are, and tensors made by the library of the
// first argument for what comes out.
class Program {
 public:
  Program(std::unique_ptr<runtime::Executor> executor, const compiler::CompileContext& context);
  ~Program();

  nb::object call(const nb::args& arguments, const nb::kwargs& named) const;
  nb::object run(const nb::args& arguments, nb::handle out, std::optional<int64_t> threads, uint64_t seed,
                 const nb::kwargs& named) const;

  // Has calls compute outputs in the memory of inputs, which are then the results: of these pairs of an
  // output and an input, those that can be.
  void overwrite(const std::vector<std::pair<size_t, size_t>>& pairs);

  // Makes anew what it made of weights that vary; runs of other threads end first.
  void renew_constants();

  const runtime::Executor& executor() const { return passable_ ? *passable_->program : *executor_; }
  const compiler::CompileContext& context() const { return context_; }

 private:
  class Call;
  struct GiveBack {
    const Program* program;
    void operator()(Call* call) const;
  };
  std::unique_ptr<Call, GiveBack> take_call() const;  // one that is idle, or a new one
  // In the order of the inputs.
  nb::object by_name(const nb::args& arguments, const nb::kwargs& named) const;
  nb::object run_data(nb::handle arguments, const runtime::RunOptions& options) const;

  compiler::CompileContext context_;
  std::vector<std::optional<size_t>>
      overwritten_;                          // for each output, the input in whose memory it is computed
  std::unique_ptr<tenon_program> passable_;  // where all that goes in and comes out are tensors of numbers
  std::unique_ptr<runtime::Executor> executor_;            // else
  mutable std::shared_mutex constants_;                    // runs share them
  mutable std::vector<std::unique_ptr<Call>> idle_calls_;  // taken and given back under the GIL
};

// Of a function of Python's that a program of this thread calls: it leaves the run that it ends. Where none
// runs, it leaves by itself.
void keep_python_error(const nb::python_error& error);

void bind_program(nb::module_& module);

}  // namespace tenon::python
