// example_file.h — an .npz with examples: the inputs of a model, and what it should make of them.
#pragma once

#include "autodiff/training_step.h"
#include "cli/arrays.h"

namespace tenon::cli {

class ExampleFile {
 public:
  ExampleFile(std::string path, std::string target)
      : path_(std::move(path)), target_(std::move(target)), file_(path_) {}

  std::unique_ptr<Graph> load(const ModelArguments& model) const {
    return file_.load(model, {.gives_statistics = true});
  }
  // For each input of the model, with as many rows; anything else is the user's fault, here and below.
  std::vector<Tensor> inputs(const Graph& model);
  // In the dtype of `wanted`, which is the type of a batch for this loss of the model.
  Tensor target(const Type& wanted, const Graph& model, const Loss& loss, int64_t examples);
  // Says which arrays were not taken.
  void note_others() const { file_.note_others(); }

 private:
  void check_rows(const std::string& name, const Tensor& array, int64_t count) const;
  void check_labels(const Tensor& target, const Loss& loss, std::optional<int64_t> classes) const;

  std::string path_, target_;
  InputFile file_;
};

// The model for batches of so many examples, of the sizes that these inputs have.
std::unique_ptr<Graph> bind_to_batch(const Graph& model, const std::vector<Tensor>& inputs, int64_t batch);

}  // namespace tenon::cli
