// validation.h — what a model that is trained makes of examples that it is not trained on.
#pragma once

#include "cli/example_file.h"
#include "runtime/executor.h"

namespace tenon::cli {

// Programs for batches, and one for the rest, which take the weights as inputs.
class Validation {
 public:
  // Compiles a graph that `evaluation_step` made.
  using Compile = std::function<std::shared_ptr<const runtime::Executor>(std::unique_ptr<Graph>)>;
  // Batches have at most so many examples: exactly, where the model fixes that.
  Validation(const std::string& path, const std::string& target, const Graph& model, const Loss& loss,
             const TrainingStep& step, int64_t batch, const Compile& compile);

  int64_t dropped() const { return dropped_; }  // examples that do not fill a batch of a fixed size

  struct Result {
    double loss = 0;
    std::optional<double> accuracy = {};  // where the target is labels
  };
  Result measure(const std::vector<Tensor>& weights, const runtime::RunOptions& options) const;

 private:
  void check_labels(const std::string& path, const Loss& loss) const;

  struct Part {  // examples that run in batches of one size
    std::shared_ptr<const runtime::Executor> program;
    int64_t first = 0, end = 0, batch = 0;
  };
  std::vector<Tensor> arrays_;
  std::vector<Part> parts_;
  int64_t dropped_ = 0;
};

// Such as "validation loss 0.52, accuracy 81.2%".
std::string describe(const Validation::Result& result);

}  // namespace tenon::cli
