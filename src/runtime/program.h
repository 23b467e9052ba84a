// program.h — a compiled graph: a flat list of steps over buffers, most of them in one planned arena.
#pragma once

#include <cstdlib>
#include <memory>
#include <mutex>
#include <span>

#include "ir/evaluate.h"
#include "ir/fit.h"
#include "runtime/kernel_function.h"
#include "runtime/plan_memory.h"

namespace tenon {

class Program;

// Where the elements of a value are while a program runs.
enum class Home : uint8_t {
  Input,     // given by the caller
  Constant,  // part of the program
  Output,    // memory of the result
  Arena,     // planned
  Own,  // made when it is known how large it is, or what it holds: strings, sequences, sizes that depend on
        // elements
};

struct Slot {
  std::string name;
  Type type;
  Home home = Home::Arena;
  int64_t number = 0;  // among the inputs or outputs
  Tensor constant = {};
  std::optional<size_t> alias = {};  // another slot that holds the same elements under another shape
};

// One phase of a kernel: turns that may run at once.
struct Phase {
  KernelFunction function;
  Dim turns, scratch;  // scratch: in bytes, for each thread
};

struct KernelStep {
  std::string name;
  std::vector<Phase> phases;
  std::vector<size_t> reads, writes;
  std::vector<Dim> sizes;            // what the kernel's symbols stand for
  Dim work = 1;                      // about how many elements are computed
  std::vector<std::string> sources;  // nodes of the user's model that it computes; at least one
};
// node "a", "b"
std::string describe_sources(const std::vector<std::string>& sources);

// A node that the op's eval runs.
struct HostStep {
  const Node* node;
  std::vector<size_t> reads, writes;
  std::map<std::string, std::shared_ptr<const Program>, std::less<>>
      regions;  // what its nested graphs became
};

// The slot has the elements of another.
struct AliasStep {
  const Node* node;
  size_t from, to;
};

using Step = std::variant<KernelStep, HostStep, AliasStep>;

struct RunOptions {
  uint64_t seed = 0;  // of the random ops
  int threads = 1;
};

struct FreeMemory {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], FreeMemory>;  // aligned to cache lines

struct Launch;

class Program {
 public:
  Program(std::unique_ptr<Graph> graph, std::vector<Slot> slots, std::vector<Step> steps,
          std::vector<size_t> outputs, std::shared_ptr<const void> code);
  ~Program();

  // The outputs of the graph for these inputs. Inputs that do not fit are the user's fault, and leave the
  // program as it was. Several threads may run it at once.
  Data run(const Data& inputs, const RunOptions& options = {}) const;

  // Whether the sizes of all inputs and outputs are known without running it, and none holds strings.
  bool has_fixed_sizes() const { return has_fixed_sizes_; }
  // The same for a program of fixed sizes, where the caller has the elements: nothing is copied that need not
  // be, and from the second run on nothing is allocated. The memory is not checked; it must be aligned for
  // the elements, and no output may overlap another or an input.
  void run_into(std::span<const void* const> inputs, std::span<void* const> outputs,
                const RunOptions& options = {}) const;

  const Graph& graph() const { return *graph_; }
  const std::vector<Slot>& slots() const { return slots_; }
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<size_t>& outputs() const { return outputs_; }  // slots
  // For these sizes of the inputs. The offsets are those of the slots, -1 for those outside the arena.
  MemoryPlan memory_plan(const Bindings& sizes) const;

 private:
  struct Layout;  // what follows from the sizes of the inputs
  struct State;   // of one run
  std::shared_ptr<const Layout> layout_for(const Bindings& sizes) const;
  std::unique_ptr<State> acquire() const;
  void release(std::unique_ptr<State> state) const;
  void run_steps(State& state) const;
  void run_step(State& state) const;
  Datum take_output(size_t slot, State& state) const;
  void run_kernel(const KernelStep& step, State& state) const;
  void launch(const KernelStep& step, const Launch& launch, State& state) const;
  void run_on_host(const HostStep& step, State& state) const;
  Tensor tensor_of(size_t slot, State& state) const;
  Datum detached(Datum datum, const State& state) const;
  std::byte* prepare(size_t slot, State& state) const;

  std::unique_ptr<Graph> graph_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  std::vector<size_t> outputs_;
  std::vector<std::pair<int64_t, int64_t>> lifetimes_;  // of each slot, in steps
  std::shared_ptr<const void> code_;                    // that the functions point into
  bool has_fixed_sizes_, has_host_steps_;
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<Bindings, std::shared_ptr<const Layout>>> layouts_;
  mutable std::vector<std::unique_ptr<State>> states_;  // of runs that ended, to be used again
};

}  // namespace tenon
