#include "cli/validation.h"

#include "cli/run_compiled.h"
#include "cli/training_data.h"
#include "tensor/wide.h"

namespace tenon::cli {

Validation::Validation(const std::string& path, const std::string& target, const Graph& model,
                       const Loss& loss, const TrainingStep& step, int64_t batch, const Compile& compile) {
  ExampleFile file(path, target);
  const std::vector<Tensor> inputs = file.inputs(model);
  const int64_t examples = inputs.front().extent(0);
  if (examples == 0)
    throw user_error("{}: there are no examples", path);
  const bool is_fixed = model.input(0).dim(0).is_constant();
  if (is_fixed && examples < batch)
    throw user_error("{}: {} examples do not fill a batch of {}", path, examples, batch);
  const int64_t rest = examples % batch, in_batches = examples - rest;
  dropped_ = is_fixed ? rest : 0;
  const auto add = [&](int64_t first, int64_t end, int64_t size) {
    const std::unique_ptr<Graph> bound = bind_to_batch(model, inputs, size);
    std::unique_ptr<Graph> graph = evaluation_step(*bound, loss, step);
    if (parts_.empty()) {
      const Type type = graph->input(static_cast<int64_t>(step.target)).type();
      arrays_ = inputs;
      arrays_.push_back(file.target(type, *bound, loss, examples));
      file.note_others();
    }
    parts_.push_back({.program = compile(std::move(graph)), .first = first, .end = end, .batch = size});
  };
  if (in_batches > 0)
    add(0, in_batches, batch);
  if (rest > dropped_)
    add(in_batches, examples, rest);
  check_labels(path, loss);
}

void Validation::check_labels(const std::string& path, const Loss& loss) const {
  if (loss.kind != Loss::Kind::CrossEntropy || !loss.ignored)
    return;
  const std::vector<int64_t> labels = widen<int64_t>(rows_between(arrays_.back(), 0, parts_.back().end));
  if (std::ranges::all_of(labels, [&](int64_t label) { return label == *loss.ignored; }))
    throw user_error("{}: no label counts", path);
}

Validation::Result Validation::measure(const std::vector<Tensor>& weights,
                                       const runtime::RunOptions& options) const {
  double loss = 0, counted = 0, right = 0;
  bool has_labels = false;
  for (const Part& part : parts_)
    for (int64_t first = part.first; first < part.end; first += part.batch) {
      Data inputs;
      for (const Tensor& array : arrays_)
        inputs.emplace_back(rows_between(array, first, first + part.batch));
      inputs.insert(inputs.end(), weights.begin(), weights.end());
      const Data outputs = run_compiled([&] { return part.program->run(inputs, options); });
      has_labels = outputs.size() > 1;
      const auto own =
          static_cast<double>(has_labels ? as_int(outputs[kCountedOutput].tensor()) : part.batch);
      if (own == 0)  // all labels of the batch are ignored
        continue;
      loss += own * as_double(outputs[kLossOutput].tensor());
      counted += own;
      right += has_labels ? static_cast<double>(as_int(outputs[kRightOutput].tensor())) : 0;
    }
  return {.loss = loss / counted, .accuracy = has_labels ? std::optional(right / counted) : std::nullopt};
}

std::string describe(const Validation::Result& result) {
  const std::string text = fmt::format("validation loss {:.6g}", result.loss);
  return result.accuracy ? text + fmt::format(", accuracy {:.1f}%", 100 * *result.accuracy) : text;
}

}  // namespace tenon::cli
