#include "runtime/executor.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/run_all.h"
#include "ir/fit.h"
#include "runtime/executor_state.h"
#include "runtime/forks.h"
#include "runtime/prepare.h"
#include "tensor/byte_count.h"

namespace tenon::runtime {
namespace {

constexpr size_t kMostLayouts = 16;

// The bytes of a tensor, as elements of a dtype.
Tensor view_of(const Tensor& tensor, DType dtype, const Extents& extents) {
  return {dtype, extents, std::make_shared<Tensor>(tensor), tensor.bytes()};
}

bool has_fixed_size(const Type& type) {
  return type.is_tensor() && type.as_tensor().dtype != DType::String && type.as_tensor().shape.extents();
}

bool has_fixed_sizes(const Program& program) {
  return std::ranges::all_of(program.inputs,
                             [](const InputPort& port) { return has_fixed_size(port.type); }) &&
         std::ranges::all_of(program.outputs,
                             [&](size_t slot) { return has_fixed_size(program.slots[slot].type); });
}

// Whether a value of the arena is ever in the memory of the host, where kernels have their own.
bool has_arena_on_host(const Program& program) {
  return std::ranges::any_of(program.steps, [&](const Step& step) {
    const auto* copy = std::get_if<CopyStep>(&step);
    const bool is_on_host =
        copy != nullptr ? copy->to != CopyStep::To::Device
                        : std::holds_alternative<HostStep>(step) || std::holds_alternative<LoopsStep>(step);
    bool uses_arena = false;
    if (is_on_host)
      for_each_slot(step, [&](size_t slot) {
        while (program.slots[slot].alias)
          slot = *program.slots[slot].alias;
        uses_arena |= program.slots[slot].home == Home::Arena;
      });
    return uses_arena;
  });
}

}  // namespace

Executor::Executor(std::shared_ptr<Program> program, std::shared_ptr<Device> device, PrepareConstants prepare)
    : Executor(program, device, prepare(*program, device), prepare) {}

Executor::Executor(std::shared_ptr<Program> program, std::shared_ptr<Device> device, Prepared prepared,
                   PrepareConstants prepare)
    : program_(std::move(program)),
      device_(std::move(device)),
      device_memory_(device_->own_memory()),
      slots_(program_->slots),
      steps_(program_->steps),
      outputs_(program_->outputs),
      constants_(std::move(prepared.constants)),
      prepare_failure_(std::move(prepared.failure)),
      planner_(*program_),
      has_fixed_sizes_(runtime::has_fixed_sizes(*program_)),
      has_host_steps_(has_host_steps(*program_)),
      uses_host_arena_(device_memory_ == nullptr || has_arena_on_host(*program_)),
      last_used_in_(find_last_uses()) {
  kernels_.resize(program_->code.size());
  run_all(kernels_.size(), device_memory_ == nullptr ? program_->target.cores : 1,
          [&](size_t i) { kernels_[i] = device_->load(program_->code[i]); });
  for (const Step& step : steps_)
    if (const auto* host = std::get_if<HostStep>(&step))
      load_regions(*host, prepare);
    else if (const auto* loops = std::get_if<LoopsStep>(&step))
      std::ranges::for_each(loops->loops, [&](const HostStep& loop) { load_regions(loop, prepare); });
  if (device_memory_ != nullptr) {
    find_outputs_on_device();
    segments_ = find_segments();
    if (prepared.on_device)
      device_constants_ = std::move(*prepared.on_device);
    else if (!prepare_failure_)
      device_constants_ = upload_constants(*program_, constants_, *device_);
  }
  hold_at_forks(mutex_);
}

Executor::~Executor() { forget_at_forks(mutex_); }

void Executor::load_regions(const HostStep& step, PrepareConstants prepare) {
  for (const auto& [name, region] : step.regions)
    regions_.emplace(region.get(), std::make_unique<Executor>(region, device_, prepare));
}

std::vector<std::vector<size_t>> Executor::find_last_uses() const {
  std::vector<std::vector<size_t>> slots_of_step(steps_.size());
  std::vector<bool> is_used_later(slots_.size(), false);
  for (size_t slot : outputs_)
    is_used_later[slot] = true;
  for (size_t step = steps_.size(); step-- > 0;)
    for_each_slot(steps_[step], [&](size_t slot) {
      if (slots_[slot].home == Home::Own && !is_used_later[slot])
        slots_of_step[step].push_back(slot);
      is_used_later[slot] = true;
    });
  return slots_of_step;
}

bool Executor::is_output(size_t slot) const {
  return std::find(outputs_.begin(), outputs_.end(), slot) != outputs_.end();
}

void Executor::specialise_by(HotSizes::Make make) {
  int64_t bytes = 0;
  for (const Tensor& constant : constants_)
    if (constant.count() > 0)
      bytes += static_cast<int64_t>(constant.bytes().size());
  hot_sizes_ = std::make_unique<HotSizes>(std::move(make), bytes);
}

const Executor* Executor::find_special(const Bindings& sizes, const RunOptions& options) const {
  const bool is_watched = options.before_steps != nullptr || options.after_step != nullptr;
  return hot_sizes_ && !is_watched ? hot_sizes_->find(sizes) : nullptr;
}

void Executor::check_sizes(const Bindings& sizes) const {
  if (!sizes.empty() && program_->size_checks)
    program_->size_checks->check(sizes);
}

std::shared_ptr<const Layout> Executor::layout_for(const Bindings& sizes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, layout] : layouts_)
    if (known == sizes)
      return layout;
  check_sizes(sizes);
  const std::shared_ptr<const Layout> layout = planner_.plan(sizes);
  if (layouts_.size() == kMostLayouts)
    layouts_.erase(layouts_.begin());
  layouts_.emplace_back(sizes, layout);
  return layout;
}

std::unique_ptr<Executor::State> Executor::acquire(const void* stream) const {
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = states_.size(); i-- > 0;) {
      State& state = *states_[i];
      const bool is_next = state.in_flight && stream != nullptr && state.stream == stream;
      if (state.in_flight && !is_next) {
        if (!device_memory_->has_ended(*state.workspace))
          continue;
        keep_failure(state);
      }
      state.is_borrowed = is_next;
      borrowed_ += is_next ? 1 : 0;
      std::unique_ptr<State> found = std::move(states_[i]);
      states_.erase(states_.begin() + static_cast<std::ptrdiff_t>(i));
      return found;
    }
  }
  auto state = std::make_unique<State>();
  state->workspace = device_->make_workspace();
  state->device_memory = device_memory_;
  state->own.resize(slots_.size());
  state->outputs.resize(outputs_.size());
  if (device_memory_ != nullptr) {
    state->device.arena = device_memory_->make_growing();
    state->device.inputs.resize(program_->inputs.size());
    state->device.outputs.resize(outputs_.size());
    state->device.own.resize(slots_.size());
    state->copied_inputs.resize(program_->inputs.size());
  }
  return state;
}

void Executor::release(std::unique_ptr<State> state) const {
  // What the caller gave and got is not ours to keep.
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].home == Home::Own) {
      state->own[i] = Datum();
      if (device_memory_ != nullptr)
        state->device.own[i] = nullptr;
    }
  for (Tensor& output : state->outputs)
    if (output.count() > 0)
      output = Tensor();
  for (Tensor& input : state->copied_inputs)
    if (input.count() > 0)
      input = Tensor();
  state->inputs = nullptr;
  state->input_memory = {};
  state->output_memory = {};
  if (device_memory_ != nullptr && state->options.stream != nullptr) {
    device_memory_->leave_stream(*state->workspace);
    state->in_flight = returns_early(state->options);
    state->stream = state->options.stream;
  }
  const std::lock_guard lock(mutex_);
  if (std::exchange(state->is_borrowed, false)) {
    --borrowed_;
    returned_.notify_all();
  }
  states_.push_back(std::move(state));
}

void Executor::give_up(State& state) const noexcept {
  if (!state.is_borrowed)
    return;
  const std::lock_guard lock(mutex_);
  --borrowed_;
  returned_.notify_all();
  try {
    keep_failure(state);
  } catch (...) {  // the device is lost, which the run says that throws
  }
}

Data Executor::run(const Data& inputs, const RunOptions& options) const {
  CHECK(options.on_device == nullptr || options.on_device->outputs.empty(), "outputs come from the host");
  Bindings bindings = bind_inputs(program_->name, program_->inputs, inputs);
  if (const Executor* special = find_special(bindings, options)) {
    Data outputs = special->run(inputs, options);
    if (options.sizes != nullptr)
      options.sizes->merge(bindings);
    return outputs;
  }
  std::unique_ptr<State> owned = acquire();
  State& state = *owned;
  state.inputs = &inputs;
  state.options = options;
  state.layout = layout_for(bindings);
  state.bindings = std::move(bindings);
  run_steps(state);
  if (options.sizes != nullptr)
    *options.sizes = state.bindings;
  Data outputs;
  for (size_t slot : outputs_)
    outputs.push_back(take_output(slot, state));
  release(std::move(owned));
  return outputs;
}

void Executor::run_into(std::span<const void* const> inputs, std::span<void* const> outputs,
                        const RunOptions& options) const {
  CHECK(has_fixed_sizes_ && inputs.size() == program_->inputs.size() && outputs.size() == outputs_.size(),
        "{} inputs and {} outputs were given", inputs.size(), outputs.size());
  std::unique_ptr<State> owned = acquire(returns_early(options) ? options.stream : nullptr);
  State& state = *owned;
  state.input_memory = inputs;
  state.output_memory = outputs;
  state.options = options;
  try {
    if (!state.layout)
      state.layout = layout_for({});
    state.bindings.clear();
    run_steps(state);
    copy_outputs(state);
  } catch (...) {
    give_up(state);
    throw;
  }
  release(std::move(owned));
}

bool Executor::knows_input_sizes() const {
  for (size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].home == Home::Input && !slots_[i].alias &&
        program_->inputs[static_cast<size_t>(slots_[i].number)].is_read && !planner_.has_extents(i))
      return false;
  return true;
}

std::optional<std::vector<Extents>> Executor::output_extents(const Data& inputs) const {
  const Bindings bindings = bind_inputs(program_->name, program_->inputs, inputs);
  const auto follows = [&](size_t slot) {
    return planner_.has_extents(slot) && slots_[slot].type.as_tensor().dtype != DType::String;
  };
  if (!std::all_of(outputs_.begin(), outputs_.end(), follows))
    return std::nullopt;
  const std::shared_ptr<const Layout> layout = layout_for(bindings);
  std::vector<Extents> extents;
  for (size_t slot : outputs_)
    extents.push_back(planner_.extents_of(slot, *layout));
  return extents;
}

void Executor::run_into(const Data& inputs, std::span<void* const> outputs, const RunOptions& options) const {
  CHECK(outputs.size() == outputs_.size(), "{} outputs were given", outputs.size());
  Bindings bindings = bind_inputs(program_->name, program_->inputs, inputs);
  if (const Executor* special = find_special(bindings, options))
    return special->run_into(inputs, outputs, options);
  std::unique_ptr<State> owned = acquire(returns_early(options) ? options.stream : nullptr);
  State& state = *owned;
  state.inputs = &inputs;
  state.output_memory = outputs;
  state.options = options;
  try {
    state.layout = layout_for(bindings);
    state.bindings = std::move(bindings);
    run_steps(state);
    copy_outputs(state);
  } catch (...) {
    give_up(state);
    throw;
  }
  release(std::move(owned));
}

// Those that no kernel wrote where they belong.
void Executor::copy_outputs(State& state) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (state.is_output_on_device(i)) {
      if (!ends_on_device_[i])
        upload_output(i, state);
      continue;
    }
    const Slot& slot = slots_[outputs_[i]];
    if (slot.home == Home::Output && !slot.alias && slot.number == static_cast<int64_t>(i))
      continue;
    if (slot.home != Home::Own) {
      if (const int64_t bytes = planner_.bytes_of(outputs_[i], *state.layout); bytes > 0)
        std::memcpy(state.output_memory[i], prepare(outputs_[i], state), static_cast<size_t>(bytes));
      continue;
    }
    const Tensor tensor = tensor_of(outputs_[i], state);
    if (tensor.count() > 0)
      std::memcpy(state.output_memory[i], tensor.bytes().data(), tensor.bytes().size());
  }
}

void Executor::run_steps(State& state) const {
  if (prepare_failure_)
    std::rethrow_exception(prepare_failure_);
  state.pointers.assign(slots_.size(), nullptr);
  if (state.options.random == nullptr) {
    state.random = RandomGenerator(state.options.seed);
    state.options.random = &state.random;
  }
  if (device_memory_ != nullptr)
    start_on_device(state);
  if (uses_host_arena_ && (state.arena_bytes < state.layout->memory.bytes || !state.arena)) {
    // Sizes that grow from run to run, as those of what a decoder remembers do, need no new arena every time.
    const auto grown =
        static_cast<int64_t>(std::min(static_cast<uint64_t>(state.arena_bytes) / 2 * 3, memory_limit()));
    state.arena_bytes = std::max(state.layout->memory.bytes, grown);
    state.arena.reset();
    state.arena = allocate(state.arena_bytes);
  }
  if (state.options.before_steps != nullptr)
    (*state.options.before_steps)();
  LayoutGraphs* const graphs = segments_.empty() ? nullptr : graphs_for(state);
  for (state.step = 0; state.step < steps_.size(); ++state.step) {
    if (graphs != nullptr && launch_segment(*graphs, state))
      continue;
    if (state.options.kernel_seconds != nullptr)
      run_timed_step(state);
    else
      run_step(state);
    if (state.options.after_step != nullptr) {
      if (device_memory_ != nullptr)
        device_memory_->wait(*state.workspace);
      (*state.options.after_step)(state.step);
    }
    for (size_t slot : last_used_in_[state.step]) {
      state.own[slot] = Datum();
      if (device_memory_ != nullptr)
        state.device.own[slot] = nullptr;
    }
  }
  if (device_memory_ != nullptr)
    finish_on_device(state);
  state.own_memory.give_back_unused();
}

void Executor::run_step(State& state) const {
  const Step& step = steps_[state.step];
  if (const auto* kernel = std::get_if<KernelStep>(&step))
    return run_kernel(*kernel, state);
  if (const auto* host = std::get_if<HostStep>(&step))
    return run_on_host(*host, state);
  if (const auto* loops = std::get_if<LoopsStep>(&step))
    return run_loops(*loops, state);
  if (const auto* copy = std::get_if<CopyStep>(&step))
    return run_copy(*copy, state);
  const auto& alias = std::get<AliasStep>(step);
  if (slots_[alias.to].home != Home::Own)
    return;
  if (alias.on_device)
    return view_on_device(alias, state);
  const Tensor tensor = tensor_of(alias.from, state);
  const DType dtype = slots_[alias.to].type.as_tensor().dtype;
  const Extents extents = extents_of(slots_[alias.to].type, state.bindings);
  check_view(alias, dtype, extents, static_cast<int64_t>(tensor.bytes().size()));
  state.own[alias.to] = detached(view_of(tensor, dtype, extents), state);
}

void Executor::run_timed_step(State& state) const {
  if (device_memory_ == nullptr || !std::holds_alternative<KernelStep>(steps_[state.step]))
    return run_step(state);
  device_memory_->start_clock(*state.workspace);
  run_step(state);
  state.options.kernel_seconds->at(state.step) = device_memory_->stop_clock(*state.workspace);
}

Datum Executor::take_output(size_t number, State& state) const {
  const Slot& slot = slots_[number];
  if (slot.home == Home::Own)
    return state.own[number];
  if (slot.home == Home::Output && !slot.alias)
    return state.outputs[static_cast<size_t>(slot.number)];
  if (slot.home == Home::Input && !slot.alias && !state.is_input_on_device(static_cast<size_t>(slot.number)))
    return (*state.inputs)[static_cast<size_t>(slot.number)];
  // A copy: the arena is used again, and constants are the program's own.
  const Tensor tensor = tensor_of(number, state);
  if (tensor.dtype() == DType::String)
    return tensor;
  Tensor copy(tensor.dtype(), tensor.extents());
  std::memcpy(copy.mutable_bytes().data(), tensor.bytes().data(), tensor.bytes().size());
  return copy;
}

// Where the elements of a slot are, or are to be written.
std::byte* Executor::prepare(size_t slot, State& state) const {
  if (state.pointers[slot] != nullptr)
    return state.pointers[slot];
  const Slot& own = slots_[slot];
  if (own.alias && own.home != Home::Own)
    return prepare(*own.alias, state);
  const auto number = static_cast<size_t>(own.number);
  std::byte* pointer = nullptr;
  switch (own.home) {
    case Home::Arena:
      CHECK(state.layout->memory.offsets[slot] >= 0, "slot {} has no place in the arena", own.name);
      pointer = state.arena.get() + state.layout->memory.offsets[slot];
      break;
    case Home::Constant:
      pointer = const_cast<std::byte*>(constants_[slot].bytes().data());
      break;
    case Home::Input:
      pointer = state.is_input_on_device(number) ? download_input(slot, state) : state.input(number);
      break;
    case Home::Output: {
      if (!state.output_memory.empty() && !state.is_output_on_device(number)) {
        pointer = static_cast<std::byte*>(state.output_memory[number]);
        break;
      }
      Tensor& tensor = state.outputs[number];
      tensor = Tensor(own.type.as_tensor().dtype, planner_.extents_of(slot, *state.layout));
      pointer = tensor.mutable_bytes().data();
      break;
    }
    case Home::Own: {
      const DType dtype = own.type.as_tensor().dtype;
      const Extents extents = extents_of(own.type, state.bindings);
      // What the caller gets is not for us to use again.
      const Tensor tensor = is_output(slot) ? Tensor(dtype, extents) : state.own_memory.take(dtype, extents);
      pointer = const_cast<std::byte*>(tensor.bytes().data());
      state.own[slot] = tensor;
      break;
    }
  }
  state.pointers[slot] = pointer;
  return pointer;
}

// The elements of a slot that is no view of another, with who owns them; nothing where nobody does, for they
// are in the arena, or in memory of the caller's.
std::optional<Tensor> Executor::owned_tensor(size_t slot, State& state) const {
  const Slot& own = slots_[slot];
  const auto number = static_cast<size_t>(own.number);
  switch (own.home) {
    case Home::Own:
      return state.own[slot].tensor();
    case Home::Constant:
      return constants_[slot];
    case Home::Input:
      if (state.is_input_on_device(number)) {
        prepare(slot, state);
        return state.copied_inputs[number];
      }
      return state.inputs == nullptr ? std::nullopt : std::optional((*state.inputs)[number].tensor());
    case Home::Output:
      prepare(slot, state);
      return state.output_memory.empty() || state.is_output_on_device(number)
                 ? std::optional(state.outputs[number])
                 : std::nullopt;
    case Home::Arena:
      return std::nullopt;
  }
  CHECK(false, "slot {} has no home", own.name);
}

Tensor Executor::tensor_of(size_t slot, State& state) const {
  size_t viewed = slot;
  while (slots_[viewed].alias)
    viewed = *slots_[viewed].alias;
  const Type& type = slots_[slot].type;
  if (const std::optional<Tensor> tensor = owned_tensor(viewed, state))
    return viewed == slot
               ? *tensor
               : view_of(*tensor, type.as_tensor().dtype, planner_.extents_of(slot, *state.layout));
  const Extents extents = planner_.extents_of(slot, *state.layout);
  const auto bytes = static_cast<size_t>(byte_count(type.as_tensor().dtype, extents));
  // Whoever holds it longer than the slot is used copies it: see detached.
  return Tensor(type.as_tensor().dtype, extents, nullptr, {prepare(slot, state), bytes});
}

void Executor::run_kernel(const KernelStep& step, State& state) const {
  state.buffers.clear();
  if (device_memory_ != nullptr) {
    state.workspace->step = state.step;
    for (const std::vector<size_t>* slots : {&step.reads, &step.writes})
      for (size_t slot : *slots)
        state.buffers.push_back(device_pointer(slot, state));
  } else {
    find_buffers(step, state);
  }
  if (const std::optional<Launch> known = planner_.launch_of(state.step, *state.layout))
    return launch(step, *known, state);
  const std::vector<int64_t> numbers = launch_numbers(step, state.bindings);
  launch(step, Launch(step, numbers.data()), state);
}

void Executor::find_buffers(const KernelStep& step, State& state) const {
  for (size_t slot : step.reads)
    state.buffers.push_back(slots_[slot].home == Home::Own
                                ? const_cast<std::byte*>(state.own[slot].tensor().bytes().data())
                                : prepare(slot, state));
  for (size_t slot : step.writes)
    state.buffers.push_back(prepare(slot, state));
}

void Executor::launch(const KernelStep& step, const Launch& launch, State& state) const {
  if (!kernels_[step.code]->launch(step, launch, state.buffers, state.options.threads, *state.workspace))
    throw element_error(step);
}

std::vector<RegionLaunch> Executor::region_launches(size_t number, const Bindings& sizes) const {
  const auto* step = std::get_if<KernelStep>(&steps_[number]);
  if (step == nullptr)
    return {};
  const std::vector<int64_t> numbers = launch_numbers(*step, sizes);
  return kernels_[step->code]->region_launches(*step, Launch(*step, numbers.data()));
}

ElementError Executor::element_error(const KernelStep& step) {
  return ElementError(fmt::format("{}: an index is out of range, or an integer is divided by zero",
                                  describe_sources(step.refusing)));
}

}  // namespace tenon::runtime
