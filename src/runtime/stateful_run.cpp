#include "runtime/stateful_run.h"

namespace tenon::runtime {
namespace {

// Elements of its own, which nobody else reads.
Tensor copy_of(const Tensor& tensor) {
  Tensor copy(tensor.dtype(), tensor.extents());
  std::ranges::copy(tensor.bytes(), copy.mutable_bytes().begin());
  return copy;
}

Tensor tensor_for(const Type& type) {
  return {type.as_tensor().dtype, type.as_tensor().shape.extents().value()};
}

}  // namespace

StatefulRun::StatefulRun(std::shared_ptr<const Executor> executor, std::vector<Pair> state,
                         const std::vector<Tensor>& initial)
    : executor_(std::move(executor)), state_(std::move(state)) {
  const Program& program = executor_->program();
  CHECK(initial.size() == state_.size(), "{} values for a state of {}", initial.size(), state_.size());
  if (!executor_->has_fixed_sizes())
    throw unsupported("{}: the sizes of its inputs and outputs must be known to keep its state",
                      program.name);
  std::vector<bool> is_state_input(program.inputs.size()), is_next_value(program.outputs.size());
  for (size_t i = 0; i < state_.size(); ++i) {
    const auto [input, output] = state_[i];
    is_state_input[input] = true;
    is_next_value[output] = true;
    const Type &type = program.inputs[input].type, &next = program.slots[program.outputs[output]].type;
    if (type != type_of(initial[i]) || type != next)
      throw user_error("the state \"{}\" is {}, its next value {}, and what it begins with {}",
                       program.inputs[input].name, type, next, type_of(initial[i]));
    const bool may_overwrite =
        output < program.overwritable.size() && std::ranges::count(program.overwritable[output], input) > 0;
    is_in_place_.push_back(may_overwrite);
    in_place_ += may_overwrite ? 1 : 0;
    current_.push_back(copy_of(initial[i]));
    next_.push_back(may_overwrite ? Tensor() : tensor_for(next));
  }
  for (size_t i = 0; i < is_state_input.size(); ++i)
    if (!is_state_input[i])
      inputs_.push_back(i);
  for (size_t i = 0; i < is_next_value.size(); ++i)
    if (!is_next_value[i])
      outputs_.push_back(i);
}

Data StatefulRun::run(const Data& inputs, const RunOptions& options) {
  const Program& program = executor_->program();
  CHECK(inputs.size() == inputs_.size(), "{} inputs for {}", inputs.size(), inputs_.size());
  std::vector<const void*> from(program.inputs.size());
  std::vector<void*> to(program.outputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const InputPort& port = program.inputs[inputs_[i]];
    CHECK(type_of(inputs[i]) == port.type, "\"{}\" is {}", port.name, type_of(inputs[i]));
    from[inputs_[i]] = inputs[i].tensor().bytes().data();
  }
  std::vector<Tensor> results;
  for (size_t output : outputs_)
    results.push_back(tensor_for(program.slots[program.outputs[output]].type));
  for (size_t i = 0; i < outputs_.size(); ++i)
    to[outputs_[i]] = results[i].mutable_bytes().data();
  for (size_t i = 0; i < state_.size(); ++i) {
    std::byte* const memory = current_[i].mutable_bytes().data();
    from[state_[i].input] = memory;
    to[state_[i].output] = is_in_place_[i] ? memory : next_[i].mutable_bytes().data();
  }
  executor_->run_into(from, to, options);
  for (size_t i = 0; i < state_.size(); ++i)
    if (!is_in_place_[i])
      std::swap(current_[i], next_[i]);
  return {results.begin(), results.end()};
}

Tensor StatefulRun::state(size_t number) const { return copy_of(current_[number]); }

}  // namespace tenon::runtime
