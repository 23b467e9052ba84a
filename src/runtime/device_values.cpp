// device_values.cpp — the values of a run on a device with memory of its own: each has a place there beside
// the one that it has on the host, and copy steps bring it from one to the other.
#include <algorithm>

#include "base/error.h"
#include "runtime/executor_state.h"
#include "tensor/byte_count.h"

namespace tenon::runtime {

void Executor::find_outputs_on_device() {
  ends_on_device_.resize(outputs_.size());
  needs_host_ = has_host_steps_;
  for (const Step& step : steps_) {
    const auto* copy = std::get_if<CopyStep>(&step);
    if (copy == nullptr)
      continue;
    needs_host_ |= copy->to == CopyStep::To::Host;
    if (copy->to == CopyStep::To::Caller)
      for (size_t i = 0; i < outputs_.size(); ++i)
        ends_on_device_[i] = ends_on_device_[i] || outputs_[i] == copy->slot;
  }
  needs_host_ |= std::ranges::find(ends_on_device_, false) != ends_on_device_.end();
}

bool Executor::returns_early(const RunOptions& options) const {
  const bool is_watched =
      options.before_steps != nullptr || options.after_step != nullptr || options.device_seconds != nullptr;
  return options.stream != nullptr && !needs_host_ && !is_watched && options.on_device != nullptr &&
         !options.on_device->outputs.empty() &&
         std::ranges::find(options.on_device->outputs, false) == options.on_device->outputs.end();
}

// Of a run that has ended since it returned.
void Executor::keep_failure(State& state) const {
  state.in_flight = false;
  if (const std::optional<size_t> failed = device_memory_->finish(*state.workspace);
      failed && !pending_failure_)
    pending_failure_ = failed;
}

void Executor::synchronize() const {
  std::vector<std::unique_ptr<State>> running;
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return borrowed_ == 0; });
  const auto first = std::ranges::stable_partition(
      states_, [](const std::unique_ptr<State>& state) { return !state->in_flight; });
  std::ranges::move(first, std::back_inserter(running));
  states_.erase(first.begin(), first.end());
  lock.unlock();  // other threads start runs meanwhile
  for (const std::unique_ptr<State>& state : running)
    device_memory_->wait(*state->workspace);
  lock.lock();
  for (std::unique_ptr<State>& state : running) {
    keep_failure(*state);
    states_.push_back(std::move(state));
  }
  if (const std::optional<size_t> failed = std::exchange(pending_failure_, std::nullopt))
    throw element_error(std::get<KernelStep>(steps_[*failed]));
}

void Executor::upload(const Tensor& output, std::byte* to) const {
  std::unique_ptr<State> state = acquire();
  if (output.count() > 0)
    device_memory_->upload(to, output.bytes().data(), static_cast<int64_t>(output.bytes().size()),
                           *state->workspace);
  device_memory_->wait(*state->workspace);
  state->options = {};
  release(std::move(state));
}

void Executor::start_on_device(State& state) const {
  state.device.pointers.assign(slots_.size(), nullptr);
  device_memory_->use_stream(*state.workspace, state.options.stream);
  std::byte* const arena = state.device.arena->reserve(state.layout->memory.bytes);
  if (std::exchange(state.device.arena_address, arena) != arena)
    state.graphs.clear();  // which name addresses in it
  if (state.options.device_seconds != nullptr)
    device_memory_->start_clock(*state.workspace);
}

void Executor::finish_on_device(State& state) const {
  if (state.options.device_seconds != nullptr)
    *state.options.device_seconds = device_memory_->stop_clock(*state.workspace);
  if (!returns_early(state.options))
    finish_kernels(state);
}

void Executor::finish_kernels(State& state) const {
  if (const std::optional<size_t> failed = device_memory_->finish(*state.workspace))
    throw element_error(std::get<KernelStep>(steps_[*failed]));
}

int64_t Executor::bytes_of(size_t slot, const State& state) const {
  if (slots_[slot].home != Home::Own && planner_.has_extents(slot))
    return planner_.bytes_of(slot, *state.layout);
  const Type& type = slots_[slot].type;
  return byte_count(type.as_tensor().dtype, extents_of(type, state.bindings));
}

std::byte* Executor::device_pointer(size_t slot, State& state) const {
  std::byte*& pointer = state.device.pointers[slot];
  if (pointer != nullptr)
    return pointer;
  const Slot& own = slots_[slot];
  const auto number = static_cast<size_t>(own.number);
  if (own.alias && own.home != Home::Own)
    return pointer = device_pointer(*own.alias, state);
  switch (own.home) {
    case Home::Arena:
      CHECK(state.layout->memory.offsets[slot] >= 0, "slot {} has no place in the arena", own.name);
      return pointer = state.device.arena_address + state.layout->memory.offsets[slot];
    case Home::Constant:
      return pointer = device_constants_.pointers[slot];
    case Home::Input:
      return pointer = state.is_input_on_device(number)
                           ? state.input(number)
                           : state.device.inputs[number].reserve(bytes_of(slot, state), *device_memory_);
    case Home::Output:
      return pointer = state.is_output_on_device(number)
                           ? static_cast<std::byte*>(state.output_memory[number])
                           : state.device.outputs[number].reserve(bytes_of(slot, state), *device_memory_);
    case Home::Own:
      state.device.own[slot] = device_memory_->allocate_for(bytes_of(slot, state), *state.workspace);
      return pointer = state.device.own[slot].get();
  }
  CHECK(false, "slot {} has no home", own.name);
}

void Executor::run_copy(const CopyStep& step, State& state) const {
  if (step.to == CopyStep::To::Device) {
    size_t viewed = step.slot;
    while (slots_[viewed].alias && slots_[viewed].home != Home::Own)
      viewed = *slots_[viewed].alias;
    if (slots_[viewed].home == Home::Input &&
        state.is_input_on_device(static_cast<size_t>(slots_[viewed].number)))
      return;
    const Tensor tensor = tensor_of(step.slot, state);
    if (tensor.count() > 0)
      device_memory_->upload(device_pointer(step.slot, state), tensor.bytes().data(),
                             static_cast<int64_t>(tensor.bytes().size()), *state.workspace);
    return;
  }
  if (step.to == CopyStep::To::Caller && !copy_to_caller(step.slot, state))
    return;
  const std::byte* from = device_pointer(step.slot, state);
  const int64_t bytes = bytes_of(step.slot, state);
  std::byte* to = prepare(step.slot, state);
  if (bytes > 0)
    device_memory_->download(to, from, bytes, *state.workspace);
  finish_kernels(state);  // before the host computes with what a kernel that failed left
}

// On the device, where no kernel wrote an output where it belongs. Whether the host wants it, too.
bool Executor::copy_to_caller(size_t slot, State& state) const {
  bool is_wanted_on_host = false;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i] != slot)
      continue;
    if (!state.is_output_on_device(i))
      is_wanted_on_host = true;
    else if (state.output_memory[i] != device_pointer(slot, state))
      device_memory_->copy(static_cast<std::byte*>(state.output_memory[i]), device_pointer(slot, state),
                           bytes_of(slot, state), *state.workspace);
  }
  return is_wanted_on_host;
}

// One that is on the host when the run ends.
void Executor::upload_output(size_t number, State& state) const {
  const Tensor tensor = tensor_of(outputs_[number], state);
  if (tensor.count() > 0)
    device_memory_->upload(static_cast<std::byte*>(state.output_memory[number]), tensor.bytes().data(),
                           static_cast<int64_t>(tensor.bytes().size()), *state.workspace);
  device_memory_->wait(*state.workspace);
}

void Executor::view_on_device(const AliasStep& step, State& state) const {
  const Slot& to = slots_[step.to];
  const int64_t bytes = bytes_of(step.from, state);
  check_view(step, to.type.as_tensor().dtype, extents_of(to.type, state.bindings), bytes);
  if (slots_[step.from].home == Home::Own) {
    state.device.own[step.to] = state.device.own[step.from];
  } else {  // what may be gone before the view is
    state.device.own[step.to] = device_memory_->allocate_for(bytes, *state.workspace);
    device_memory_->copy(state.device.own[step.to].get(), device_pointer(step.from, state), bytes,
                         *state.workspace);
  }
  state.device.pointers[step.to] = state.device.own[step.to].get();
}

std::byte* Executor::download_input(size_t slot, State& state) const {
  const auto number = static_cast<size_t>(slots_[slot].number);
  Tensor& copy = state.copied_inputs[number];
  copy = Tensor(slots_[slot].type.as_tensor().dtype, state.inputs == nullptr
                                                         ? planner_.extents_of(slot, *state.layout)
                                                         : (*state.inputs)[number].tensor().extents());
  const std::span<std::byte> bytes = copy.mutable_bytes();
  device_memory_->download(bytes.data(), state.input(number), std::ssize(bytes), *state.workspace);
  return bytes.data();
}

}  // namespace tenon::runtime
