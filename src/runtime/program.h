// program.h — a compiled graph: a flat list of steps over buffers, most of them in one planned arena.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "ir/evaluate.h"
#include "ir/fit.h"
#include "ir/size_checks.h"
#include "runtime/execution_plan.h"
#include "runtime/hot_sizes.h"

namespace tenon::runtime {

struct RunOptions {
  uint64_t seed = 0;  // of the random ops
  int threads = 1;
  RandomGenerator* random = nullptr;  // what they draw from instead, where there is one
  // Where there are such, they are called before the first step, and after each with its number; not for
  // those of nested graphs.
  const std::function<void()>* before_steps = nullptr;
  const std::function<void(size_t step)>* after_step = nullptr;
  // Where there is one, run() stores the values of size symbols there, dynamic ones
  // included.
  Bindings* sizes = nullptr;
};

// Generated code met elements that it cannot compute with. It only says in which nodes: the op's eval, which
// looks at each element by itself, can say more.
class ElementError : public UserError {
 public:
  using UserError::UserError;
};

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], FreeMemory>;  // aligned to cache lines

class LoopRun;

class Program {
 public:
  Program(std::unique_ptr<Graph> graph, std::vector<Slot> slots, std::vector<Step> steps,
          std::vector<size_t> outputs, std::shared_ptr<const void> code);
  ~Program();

  // Specialises hot sizes: inputs whose sizes recur run in programs that `make` compiles for them alone. Runs
  // with observers do not.
  void specialise_by(HotSizes::Make make);

  // The outputs of the graph for these inputs. Inputs that do not fit are the user's fault, their elements
  // an ElementError, and leave the program as it was. Several threads may run it at once.
  Data run(const Data& inputs, const RunOptions& options = {}) const;

  // Whether the sizes of all inputs and outputs are known without running it, and none holds strings.
  bool has_fixed_sizes() const { return has_fixed_sizes_; }
  // The same for a program of fixed sizes, where the caller has the elements: nothing is copied that need not
  // be, and from the second run on only what is copied, and host steps, allocate. The memory is not checked;
  // it must be aligned for the elements, and no output may overlap another or an input.
  void run_into(std::span<const void* const> inputs, std::span<void* const> outputs,
                const RunOptions& options = {}) const;

  // Whether the sizes of all inputs follow from the symbols that stand alone in one: an input of m+1 elements
  // does not say what m is.
  bool knows_input_sizes() const;
  // The sizes of the outputs for inputs of these sizes; nothing where they are dynamic, or one holds
  // strings.
  std::optional<std::vector<Extents>> output_extents(const Data& inputs) const;
  // The same as run where they are known, with memory of the caller's for the outputs.
  void run_into(const Data& inputs, std::span<void* const> outputs, const RunOptions& options = {}) const;

  // Whether some steps are no kernels: only those draw random numbers.
  bool has_host_steps() const { return has_host_steps_; }

  class Runs;  // of inputs of the same sizes: see repeated_runs.h

  const Graph& graph() const { return *graph_; }
  const std::vector<Slot>& slots() const { return slots_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<size_t>& outputs() const { return outputs_; }  // slots
  // For these sizes of the inputs. The offsets are those of the slots, -1 for those outside the arena.
  MemoryPlan memory_plan(const Bindings& sizes) const;

 private:
  struct State;  // of one run
  std::vector<std::vector<size_t>> find_last_uses() const;
  bool is_output(size_t slot) const;
  // For inputs of these sizes alone; null where this one is to run.
  const Program* find_special(const Bindings& sizes, const RunOptions& options) const;
  std::shared_ptr<const Layout> layout_for(const Bindings& sizes) const;
  void check_sizes(const Bindings& sizes) const;
  std::unique_ptr<State> acquire() const;
  void release(std::unique_ptr<State> state) const;
  void run_steps(State& state) const;
  void run_step(State& state) const;
  Datum take_output(size_t slot, State& state) const;
  void copy_outputs(State& state) const;
  void run_kernel(const KernelStep& step, State& state) const;
  void launch(const KernelStep& step, const Launch& launch, State& state) const;
  void run_on_host(const HostStep& step, State& state) const;
  void run_loops(const LoopsStep& step, State& state) const;
  Data operands_of(const HostStep& step, State& state) const;
  Tensor place_result(size_t slot, DType dtype, const Extents& extents, State& state) const;
  std::unique_ptr<LoopRun> start_loop(const HostStep& step, const Data& operands, int threads,
                                      State& state) const;
  void store_results(const HostStep& step, Data results, State& state) const;
  std::optional<Tensor> owned_tensor(size_t slot, State& state) const;
  Tensor tensor_of(size_t slot, State& state) const;
  Datum detached(Datum datum, const State& state) const;
  std::byte* prepare(size_t slot, State& state) const;

  std::unique_ptr<Graph> graph_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<size_t> outputs_;
  ExecutionPlan planner_;
  std::shared_ptr<const void> code_;  // that the functions point into
  bool has_fixed_sizes_, has_host_steps_;
  std::vector<std::vector<size_t>> last_used_in_;  // of each step, slots with memory of their own
  mutable std::mutex mutex_;
  mutable std::unique_ptr<SizeChecks> checks_;  // once there is something to check
  mutable std::vector<std::pair<Bindings, std::shared_ptr<const Layout>>> layouts_;
  mutable std::vector<std::unique_ptr<State>> states_;  // of runs that ended, to be used again
  std::unique_ptr<HotSizes> hot_sizes_;
};

}  // namespace tenon::runtime
