#include "runtime/prepare.h"

#include <algorithm>
#include <atomic>

#include "base/error.h"
#include "base/run_all.h"
#include "runtime/executor.h"
#include "schedule/cpu/pack_constant.h"
#include "schedule/cpu/winograd.h"
#include "target/resources.h"
#include "tensor/join.h"
#include "tensor/release_literal.h"

namespace tenon::runtime {
namespace {

constexpr uint64_t kLargestCopied = 64 << 10;  // in bytes
constexpr int64_t kLargeBytes = 4 << 20;       // of a constant that all threads work on

// Small constants are copied: reading one where it lies in a file would bring megabytes around it along.
Tensor as_it_is(const Literal& literal, Tensor tensor) {
  const auto* slice = std::get_if<Literal::FileSlice>(&literal.form());
  if (slice == nullptr || slice->size > kLargestCopied)
    return tensor;
  Tensor copy(tensor.dtype(), tensor.extents());
  std::copy(tensor.bytes().begin(), tensor.bytes().end(), copy.mutable_bytes().begin());
  return copy;
}

class Preparation {
 public:
  Preparation(Program& program, const std::shared_ptr<Device>& device)
      : program_(program),
        prepare_(program.prepare),
        device_(device),
        threads_(available_cores()),
        keeps_weights_(has_varying_weights(program)),
        constants_(program.slots.size()),
        waiting_(prepare_.weights.size()) {
    for (const PrepareStep& step : prepare_.steps)
      for (size_t weight : step.weights)
        ++waiting_[weight];
  }

  std::vector<Tensor> run() {
    run_steps(false);
    return std::move(constants_);
  }

  // Those of the constants that are made of weights that vary.
  void renew(std::vector<Tensor>& constants) {
    constants_ = std::move(constants);
    run_steps(true);
    constants = std::move(constants_);
  }

 private:
  void run_steps(bool only_varying) {
    std::vector<std::vector<const PrepareStep*>> after(prepare_.programs.size());  // each program
    std::vector<const PrepareStep*> first;
    for (const PrepareStep& step : prepare_.steps) {
      if (only_varying && !varies(step))
        continue;
      const std::optional<size_t> last = last_program(step);
      (last ? after[*last] : first).push_back(&step);
    }
    make_all(first);
    for (size_t i = 0; i < prepare_.programs.size(); ++i) {
      const bool varies = has_varying_weights(*prepare_.programs[i]);
      results_.push_back(device_ && (varies || !only_varying) ? run_program(prepare_.programs[i]) : Data());
      if (device_ && keeps_weights_ && !varies && !only_varying)
        keep_results(i);
      make_all(after[i]);
    }
  }

  // Of a program that need not run again.
  void keep_results(size_t program) {
    for (Weight& weight : prepare_.weights)
      if (weight.program == program) {
        weight.literal = results_[program][weight.output].tensor();
        weight.program.reset();
      }
  }

  bool varies(const PrepareStep& step) const {
    return std::ranges::any_of(step.weights,
                               [&](size_t weight) { return prepare_.weights[weight].literal.varies(); });
  }

  // Its weights were read where they lie.
  Data run_program(const std::shared_ptr<Program>& program) const {
    Data results = Executor(program, device_).run({}, {.threads = threads_});
    for (const Weight& weight : program->prepare.weights)
      release(weight.literal);
    return results;
  }

  std::optional<size_t> last_program(const PrepareStep& step) const {
    std::optional<size_t> last;
    for (size_t weight : step.weights)
      if (const std::optional<size_t> program = prepare_.weights[weight].program)
        last = std::max(last.value_or(0), *program);
    return last;
  }

  // Large ones sequentially, so that not all of them are in memory twice; first those that free memory.
  void make_all(const std::vector<const PrepareStep*>& steps) {
    std::vector<const PrepareStep*> large, others;
    for (const PrepareStep* step : steps)
      (is_large(*step) ? large : others).push_back(step);
    std::ranges::stable_partition(large, [&](const PrepareStep* step) { return frees_memory(*step); });
    for (const PrepareStep* step : large)
      make(*step, threads_);
    run_all(others.size(), threads_, [&](size_t i) { make(*others[i], 1); });
  }

  bool is_large(const PrepareStep& step) const {
    const TensorType& type = program_.slots[step.slot].type.as_tensor();
    return (step.vnni_dim || std::holds_alternative<lowering::PackedWeights>(step.layout)) &&
           element_count(*type.shape.extents()) * info(type.dtype).bytes >= kLargeBytes;
  }

  bool frees_memory(const PrepareStep& step) const {
    const Weight& weight = prepare_.weights[step.weights.front()];
    return weight.program || std::holds_alternative<Tensor>(weight.literal.form());
  }

  void make(const PrepareStep& step, int threads) {
    std::vector<Tensor> pieces;
    for (size_t weight : step.weights)
      pieces.push_back(elements_of(prepare_.weights[weight]));
    if (step.vnni_dim)
      pack_words(pieces, step, threads);
    constants_[step.slot] = laid_out(step, pieces, threads);
    pieces.clear();
    for (size_t weight : step.weights)
      if (--waiting_[weight] == 0)
        release_elements(prepare_.weights[weight]);
  }

  static void pack_words(std::vector<Tensor>& pieces, const PrepareStep& step, int threads) {
    if (step.dim == *step.vnni_dim)
      pieces = {join(pieces, step.dim)};
    for (Tensor& piece : pieces)
      piece = schedule::vnni_packed(piece, *step.vnni_dim, threads);
  }

  Tensor laid_out(const PrepareStep& step, const std::vector<Tensor>& pieces, int threads) const {
    if (const auto* packed = std::get_if<lowering::PackedWeights>(&step.layout)) {
      Tensor panels = schedule::packed_b(pieces, step.dim, packed->order, threads);
      return packed->split ? schedule::split_into_bf16x3(panels, threads) : panels;
    }
    if (const auto* winograd = std::get_if<lowering::TransformedWeights>(&step.layout))
      return schedule::winograd_weights(join(pieces, step.dim), winograd->tile, program_.target, threads);
    if (const auto* permuted = std::get_if<lowering::PermutedLayout>(&step.layout))
      return schedule::reordered(join(pieces, step.dim), permuted->order);
    return pieces.size() == 1 && !step.vnni_dim
               ? as_it_is(prepare_.weights[step.weights.front()].literal, pieces.front())
               : join(pieces, step.dim);
  }

  Tensor elements_of(const Weight& weight) const {
    return weight.program && device_ ? results_[*weight.program][weight.output].tensor()
                                     : weight.literal.tensor();
  }

  void release_elements(Weight& weight) {
    release(weight.literal);
    if (!keeps_weights_)
      weight.literal.give_up_elements();
    if (weight.program && device_)
      results_[*weight.program][weight.output] = Datum();
  }

  Program& program_;
  Prepare& prepare_;
  const std::shared_ptr<Device>& device_;
  const int threads_;
  const bool keeps_weights_;
  std::vector<Tensor> constants_;
  std::vector<Data> results_;              // of the programs
  std::vector<std::atomic<int>> waiting_;  // steps, for each weight
};

}  // namespace

bool has_varying_weights(const Program& program) {
  return std::ranges::any_of(program.prepare.weights,
                             [](const Weight& weight) { return weight.literal.varies(); });
}

void renew_constants(Program& program, const std::shared_ptr<Device>& device,
                     std::vector<Tensor>& constants) {
  Preparation(program, device).renew(constants);
}

Prepared run_prepare(Program& program, const std::shared_ptr<Device>& device) {
  try {
    return {Preparation(program, device).run()};
  } catch (const UserError&) {
    return {std::vector<Tensor>(program.slots.size()), std::current_exception()};
  }
}

}  // namespace tenon::runtime
