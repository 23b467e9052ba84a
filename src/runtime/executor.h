// executor.h — runs a program on a device: it holds the loaded code, the constants, and the memory of runs.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>

#include "ir/evaluate.h"
#include "runtime/device.h"
#include "runtime/hot_sizes.h"
#include "runtime/prepare.h"
#include "runtime/program.h"

namespace tenon::runtime {

// Which of the caller's inputs and outputs are memory of the device, aligned to 16 bytes. The others are the
// host's, and so are all where there are no flags.
struct DevicePorts {
  std::vector<bool> inputs, outputs;
};

struct RunOptions {
  uint64_t seed = 0;  // of the random ops
  int threads = 1;
  RandomGenerator* random = nullptr;       // what they draw from instead, where there is one
  const DevicePorts* on_device = nullptr;  // where some are
  // Of the device, where kernels have memory of their own: the run comes after what is in this stream. With
  // it, run_into may return before the run has ended: where all outputs are on the device and no step needs
  // the host. What a kernel refuses is then said by synchronize.
  void* stream = nullptr;
  // Where there is one, and kernels have memory of their own: how many seconds the run took there, by the
  // clock of the device, from the first upload to the last kernel or download.
  double* device_seconds = nullptr;
  // Where there is one, likewise: the seconds of each step that is a kernel, by the clock of the device. Of
  // others, nothing is written.
  std::vector<double>* kernel_seconds = nullptr;
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

class LoopRun;
struct GraphSegment;
struct LayoutGraphs;

class Executor {
 public:
  // Loads the code and, unless the constants are given, makes them (see prepare.h); those of nested programs,
  // too.
  Executor(std::shared_ptr<Program> program, std::shared_ptr<Device> device,
           PrepareConstants prepare = run_prepare);
  Executor(std::shared_ptr<Program> program, std::shared_ptr<Device> device, Prepared prepared,
           PrepareConstants prepare = run_prepare);
  ~Executor();

  const Program& program() const { return *program_; }
  const std::vector<Tensor>& constants() const { return constants_; }  // by slot
  Device& device() const { return *device_; }

  // Makes constants anew that are made of weights which vary (see Literal). Nothing may run meanwhile.
  void renew_constants();

  // Specialises hot sizes: inputs whose sizes recur run in programs that `make` compiles for them alone. Runs
  // with observers do not.
  void specialise_by(HotSizes::Make make);

  // The outputs for these inputs. Inputs that do not fit are the user's fault, their elements an
  // ElementError, and leave the executor as it was. Several threads may run it at once.
  Data run(const Data& inputs, const RunOptions& options = {}) const;

  // Whether the sizes of all inputs and outputs are known without running it, and none holds strings.
  bool has_fixed_sizes() const { return has_fixed_sizes_; }
  // The same for a program of fixed sizes, where the caller has the elements: nothing is copied that need not
  // be, and from the second run on only what is copied, and host steps, allocate. The memory is not checked;
  // it must be aligned for the elements, and no output may overlap another, or an input but for one that it
  // may be computed over (Program::overwritable).
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

  // Waits for the runs that run_into returned from before they had ended. An ElementError, once, where a
  // kernel of one of them met elements that it cannot compute with.
  void synchronize() const;
  // Brings the elements of an output that run returned to memory of the device.
  void upload(const Tensor& output, std::byte* to) const;
  // How the kernel of a step is launched where symbols stand for these sizes; nothing for other steps, and on
  // a CPU.
  std::vector<RegionLaunch> region_launches(size_t step, const Bindings& sizes) const;

  class Runs;  // of inputs of the same sizes: see repeated_runs.h

 private:
  struct State;  // of one run
  void load_regions(const HostStep& step, PrepareConstants prepare);
  std::vector<std::vector<size_t>> find_last_uses() const;
  bool is_output(size_t slot) const;
  // For inputs of these sizes alone; null where this one is to run.
  const Executor* find_special(const Bindings& sizes, const RunOptions& options) const;
  std::shared_ptr<const Layout> layout_for(const Bindings& sizes) const;
  void check_sizes(const Bindings& sizes) const;
  // One of whose runs may still go on where they are in this stream, and no run waits for its own end.
  std::unique_ptr<State> acquire(const void* stream = nullptr) const;
  // Whether such a run of run_into ends before its kernels do.
  bool returns_early(const RunOptions& options) const;
  void release(std::unique_ptr<State> state) const;
  void run_steps(State& state) const;
  void run_step(State& state) const;
  void run_timed_step(State& state) const;
  Datum take_output(size_t slot, State& state) const;
  void copy_outputs(State& state) const;
  void run_kernel(const KernelStep& step, State& state) const;
  void find_buffers(const KernelStep& step, State& state) const;
  void launch(const KernelStep& step, const Launch& launch, State& state) const;
  static ElementError element_error(const KernelStep& step);
  void run_on_host(const HostStep& step, State& state) const;
  Data results_of(const HostStep& step, const Data& operands, State& state) const;
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

  // On a device with memory of its own: see device_values.cpp.
  // Steps that can be launched as one, by the first: see launch_graphs.cpp.
  std::map<size_t, size_t> find_segments() const;
  LayoutGraphs* graphs_for(State& state) const;
  GraphSegment make_segment(size_t first, size_t last, State& state) const;
  // Whether the steps from this one on were launched as one; then state.step is the last of them.
  bool launch_segment(LayoutGraphs& graphs, State& state) const;

  void start_on_device(State& state) const;
  void finish_on_device(State& state) const;
  void finish_kernels(State& state) const;  // an ElementError where one failed
  int64_t bytes_of(size_t slot, const State& state) const;
  std::byte* device_pointer(size_t slot, State& state) const;
  void run_copy(const CopyStep& step, State& state) const;
  bool copy_to_caller(size_t slot, State& state) const;
  void find_outputs_on_device();
  void keep_failure(State& state) const;
  // Where a run throws: what one before it in the same state met is not lost.
  void give_up(State& state) const noexcept;
  void upload_output(size_t number, State& state) const;
  void view_on_device(const AliasStep& step, State& state) const;
  std::byte* download_input(size_t slot, State& state) const;

  const std::shared_ptr<Program> program_;
  const std::shared_ptr<Device> device_;
  DeviceMemory* const device_memory_;  // null where kernels use that of the host
  const std::vector<Slot>& slots_;
  const std::vector<Step>& steps_;
  const std::vector<size_t>& outputs_;
  std::vector<Tensor> constants_;  // of each slot
  DeviceConstants device_constants_;
  std::vector<bool> ends_on_device_;    // of each output
  bool needs_host_ = false;             // some step, or what becomes of an output
  std::map<size_t, size_t> segments_;   // of a device that takes launches together: first and last steps
  std::exception_ptr prepare_failure_;  // what every run throws, if anything
  ExecutionPlan planner_;
  std::vector<std::unique_ptr<LoadedKernel>> kernels_;
  std::map<const Program*, std::unique_ptr<Executor>> regions_;  // nested graphs of host steps
  bool has_fixed_sizes_, has_host_steps_;
  bool uses_host_arena_;
  std::vector<std::vector<size_t>> last_used_in_;  // of each step, slots with memory of their own
  mutable std::mutex mutex_;
  mutable std::vector<std::pair<Bindings, std::shared_ptr<const Layout>>> layouts_;
  mutable std::vector<std::unique_ptr<State>> states_;  // of runs that returned, to be used again
  mutable std::optional<size_t> pending_failure_;       // a step of a run that returned before it ended
  mutable int borrowed_ = 0;                            // states in flight with which other runs go on
  mutable std::condition_variable returned_;            // one of them
  std::unique_ptr<HotSizes> hot_sizes_;
};

}  // namespace tenon::runtime
