#include "runtime/run_loop.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "tensor/wide.h"

namespace tenon::runtime {
namespace {

// Memory that was placed to be written, or that a loop has for itself.
std::byte* memory_of(const Tensor& tensor) { return const_cast<std::byte*>(tensor.bytes().data()); }

bool are_numbers(std::span<const Datum> data) {
  return std::all_of(data.begin(), data.end(), [](const Datum& datum) {
    return std::holds_alternative<Tensor>(datum) && datum.tensor().dtype() != DType::String;
  });
}

std::vector<Tensor> tensors_of(std::span<const Datum> data) {
  std::vector<Tensor> tensors;
  for (const Datum& datum : data)
    tensors.push_back(datum.tensor());
  return tensors;
}

int64_t product(Extents::const_iterator begin, Extents::const_iterator end) {
  return std::accumulate(begin, end, int64_t{1}, std::multiplies<>());
}

// The axis, counted from the front; nothing where there is none such.
std::optional<int64_t> find_axis(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank)
    return std::nullopt;
  return axis < 0 ? axis + rank : axis;
}

}  // namespace

// --- slices ---

LoopRun::Sliced::Sliced(const Tensor& whole, int64_t axis, bool reversed)
    : whole(whole), iterations(whole.extent(axis)), reversed(reversed) {
  Extents extents = whole.extents();
  outer = product(extents.begin(), extents.begin() + axis);
  block = product(extents.begin() + axis + 1, extents.end()) * whole.element_size();
  extents.erase(extents.begin() + axis);
  slice = outer == 1 ? Tensor(whole.dtype(), extents, nullptr, {memory_of(whole), static_cast<size_t>(block)})
                     : Tensor(whole.dtype(), extents);
}

std::byte* LoopRun::Sliced::block_of(int64_t iteration, int64_t index) const {
  return memory_of(whole) +
         (index * iterations + (reversed ? iterations - 1 - iteration : iteration)) * block;
}

std::byte* LoopRun::Sliced::place(int64_t iteration) {
  return outer == 1 ? block_of(iteration, 0) : memory_of(slice);
}

void LoopRun::Sliced::gather(int64_t iteration) {
  for (int64_t i = 0; outer != 1 && i < outer; ++i)
    std::memcpy(memory_of(slice) + i * block, block_of(iteration, i), static_cast<size_t>(block));
}

void LoopRun::Sliced::scatter(int64_t iteration) {
  for (int64_t i = 0; outer != 1 && i < outer; ++i)
    std::memcpy(block_of(iteration, i), memory_of(slice) + i * block, static_cast<size_t>(block));
}

// --- before the first iteration ---

LoopRun::LoopRun(const ControlFlow& loop, const ControlOperands& operands, const Program& body)
    : loop_(loop),
      body_(body),
      leading_(loop.leading()),
      carried_(tensors_of(operands.carried)),
      captured_(tensors_of(operands.captured)) {}

std::unique_ptr<LoopRun> LoopRun::start(const ControlFlow& loop, std::span<const Datum> operands,
                                        const Executor& body, const RunOptions& options, const Place& place) {
  if (loop.kind == ControlFlow::Kind::If || !are_numbers(operands))
    return nullptr;
  const ControlOperands given(loop, operands);
  std::unique_ptr<LoopRun> run(new LoopRun(loop, given, body.program()));
  if (!body.knows_input_sizes() || !run->read_iterations(given))
    return nullptr;
  const Data inputs = run->first_inputs();
  const std::optional<std::vector<Extents>> outputs = body.output_extents(inputs);
  if (!outputs || !run->place_results(*outputs, place))
    return nullptr;
  run->runs_.emplace(body, inputs, options);
  return run;
}

// How many iterations there are, and what each has of what is scanned; false where there are none, or where
// run_control says what is wrong.
bool LoopRun::read_iterations(const ControlOperands& operands) {
  if (loop_.kind == ControlFlow::Kind::Scan) {
    const std::vector<Tensor> scanned = tensors_of(operands.scanned);
    for (size_t i = 0; i < scanned.size(); ++i) {
      const std::optional<int64_t> axis = find_axis(loop_.axes[i], scanned[i].rank());
      if (!axis)
        return false;
      scanned_.emplace_back(scanned[i], *axis, loop_.reversed[i] != 0);
    }
    iterations_ = scanned_.front().iterations;
    return iterations_ > 0 && std::all_of(scanned_.begin(), scanned_.end(), [&](const Sliced& sliced) {
             return sliced.iterations == iterations_;
           });
  }
  const auto number = [](const Tensor* tensor, int64_t otherwise) {
    if (tensor == nullptr)
      return otherwise;
    return tensor->count() == 1 ? widen<int64_t>(*tensor).front() : 0;
  };
  iterations_ = number(operands.trip_count, std::numeric_limits<int64_t>::max());
  return iterations_ > 0 && number(operands.condition, 1) != 0;
}

// What the first iteration gets, as far as sizes go; the places are those of the body's inputs.
Data LoopRun::first_inputs() {
  Data inputs;
  if (leading_ == 1) {
    inputs.emplace_back(Tensor::scalar(iteration_));
    inputs_.push_back(&iteration_);
  }
  for (const Tensor& tensor : carried_)
    inputs.emplace_back(tensor);
  for (const Sliced& sliced : scanned_)
    inputs.emplace_back(sliced.slice);
  for (const Tensor& tensor : captured_)
    inputs.emplace_back(tensor);
  for (size_t i = inputs_.size(); i < inputs.size(); ++i)
    inputs_.push_back(inputs[i].tensor().bytes().data());
  return inputs;
}

bool LoopRun::place_results(const std::vector<Extents>& outputs, const Place& place) {
  if (leading_ == 1) {
    if (element_count(outputs.front()) != 1)
      return false;
    outputs_.push_back(&go_on_);
  }
  outputs_.resize(outputs.size(), nullptr);
  for (size_t i = 0; i < carried_.size(); ++i)
    if (outputs[leading_ + i] != carried_[i].extents())
      return false;
  const std::span<const Extents> slices = std::span(outputs).subspan(leading_ + carried_.size());
  if (!slices.empty() && !loop_.ends_by_count)
    return false;
  std::vector<int64_t> axes(slices.size()), reversed(slices.size());
  if (loop_.kind == ControlFlow::Kind::Scan) {
    axes = loop_.output_axes;
    reversed = loop_.output_reversed;
  }
  std::vector<Extents> wholes(slices.begin(), slices.end());
  for (size_t i = 0; i < slices.size(); ++i) {
    const std::optional<int64_t> axis = find_axis(axes[i], static_cast<int64_t>(slices[i].size()) + 1);
    if (!axis)
      return false;
    axes[i] = *axis;
    wholes[i].insert(wholes[i].begin() + *axis, iterations_);
  }
  for (size_t i = 0; i < carried_.size(); ++i) {
    last_.push_back(place(i, carried_[i].dtype(), carried_[i].extents()));
    if (iterations_ > 1)
      spare_.emplace_back(carried_[i].dtype(), carried_[i].extents());
  }
  const std::span<const size_t> collected = std::span(body_.outputs).subspan(leading_ + carried_.size());
  for (size_t i = 0; i < wholes.size(); ++i) {
    const DType dtype = body_.slots[collected[i]].type.as_tensor().dtype;
    collected_.emplace_back(place(carried_.size() + i, dtype, wholes[i]), axes[i], reversed[i] != 0);
  }
  return true;
}

bool LoopRun::gain_beside_each_other(const std::vector<std::unique_ptr<LoopRun>>& loops, int threads) {
  int64_t together = 0;  // threads that would share the most work there is in an iteration
  for (const std::unique_ptr<LoopRun>& loop : loops) {
    if (!loop || loop->iterations_ < kElementsPerThread / std::max<int64_t>(loop->runs_->work(), 1))
      return false;
    together = std::max(together, std::min<int64_t>(loop->runs_->work() / kElementsPerThread, threads));
  }
  // Threads that share an iteration wait for each other in every one, and so gain half of what they could, or
  // less.
  return 2 * std::min<int64_t>(static_cast<int64_t>(loops.size()), threads) > together;
}

// --- the iterations ---

Data LoopRun::run() {
  for (iteration_ = 0; iteration_ < iterations_ && go_on_ != 0; ++iteration_)
    run_iteration(iteration_);
  for (size_t i = 0; i < carried_.size(); ++i)
    if (const std::span<const std::byte> to = last_[i].bytes();
        inputs_[leading_ + i] != to.data() && !to.empty())
      std::memcpy(memory_of(last_[i]), inputs_[leading_ + i], to.size());
  Data results(last_.begin(), last_.end());
  for (const Sliced& sliced : collected_)
    results.emplace_back(sliced.whole);
  return results;
}

void LoopRun::run_iteration(int64_t iteration) {
  // No iteration writes what it reads, and the last that there can be writes what the loop gives.
  const std::vector<Tensor>& next = (iterations_ - 1 - iteration) % 2 == 0 ? last_ : spare_;
  for (size_t i = 0; i < carried_.size(); ++i)
    outputs_[leading_ + i] = memory_of(next[i]);
  for (size_t i = 0; i < scanned_.size(); ++i) {
    scanned_[i].gather(iteration);
    inputs_[leading_ + carried_.size() + i] = scanned_[i].place(iteration);
  }
  for (size_t i = 0; i < collected_.size(); ++i)
    outputs_[leading_ + carried_.size() + i] = collected_[i].place(iteration);
  runs_->run(inputs_, outputs_);
  for (Sliced& sliced : collected_)
    sliced.scatter(iteration);
  for (size_t i = 0; i < carried_.size(); ++i)
    inputs_[leading_ + i] = outputs_[leading_ + i];
}

}  // namespace tenon::runtime
