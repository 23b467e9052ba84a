// training_step.h — a training step as a graph: a model, its loss, the gradients, and the update of the
// weights. docs/training.md says what there is.
#pragma once

#include <map>
#include <optional>

#include "ir/graph.h"
#include "tensor/literal.h"

namespace tenon {

struct Loss {
  enum class Kind : uint8_t { SquaredError, AbsoluteError, CrossEntropy, BinaryCrossEntropyWithLogits };

  Kind kind = Kind::CrossEntropy;
  double smoothing = 0;                 // of labels, for CrossEntropy
  std::optional<int64_t> ignored = {};  // a label that does not count, likewise
};

struct LearningRate {
  enum class Schedule : uint8_t { Constant, Cosine, Step };

  double rate = 1e-3;
  Schedule schedule = Schedule::Constant;
  int64_t warmup = 0;   // steps over which the rate rises from 0, whatever the schedule
  int64_t steps = 0;    // Cosine: how many there are, after which it is `lowest`
  double lowest = 0;    // Cosine
  int64_t every = 0;    // Step: after so many steps each …
  double factor = 0.1;  // … the rate is multiplied by this
};

struct Optimizer {
  enum class Kind : uint8_t { Sgd, Adam, AdamW, Lion, Adagrad };

  Kind kind = Kind::AdamW;
  LearningRate rate = {};
  double momentum = 0, dampening = 0;  // Sgd
  bool nesterov = false;               // Sgd
  double beta1 = 0.9, beta2 = 0.999;   // Adam, AdamW and Lion
  double epsilon = 1e-8;               // Adam, AdamW and Adagrad
  double weight_decay = 0;             // AdamW and Lion: of the weights; others: added to the gradient
};
// As PyTorch has them, or the paper that describes the optimiser.
Optimizer default_options(Optimizer::Kind kind);

struct TrainingOptions {
  std::vector<std::string> frozen = {};  // names of weights that stay as they are; * stands for anything
  double clip_norm = 0;                  // of all gradients together; 0: they are not clipped
  // Into how many parts a batch is split, whose gradients are computed one after the other. Each has as many
  // examples as the model takes.
  int64_t parts = 1;
};

// What a step reads and writes: an input of the graph, and the output that is its next value.
struct StateValue {
  std::string name;         // of the input
  std::string weight = {};  // which it is, or belongs to; empty of the number of the step
  size_t input = 0, output = 0;
  Literal initial;
};

// The inputs are those of the model, the target, and the state. The outputs are the loss, the rate, and the
// next state: next_NAME for each input NAME.
struct TrainingStep {
  std::unique_ptr<Graph> graph;
  size_t target = 0;  // among the inputs
  // The weights, the statistics, what the optimiser keeps of each weight, and the number of the step.
  std::vector<StateValue> state;
  size_t weights = 0, statistics = 0;       // how many of the state
  std::vector<std::string> unreached = {};  // weights that the loss does not depend on
  bool drops_activation = false;            // the model ended in the activation that the loss has itself
};

// How many of the state are parameters of the model, which come first.
inline size_t count_parameters(const TrainingStep& step) { return step.weights + step.statistics; }

constexpr size_t kLossOutput = 0, kRateOutput = 1;

// The loss is that of the first output of the model. Weights are the float parameters of the graph. An output
// with the name and type of a parameter is its next value: the parameter is a statistic, such as the running
// mean of batch normalisation in training, and no weight. What cannot be trained is a user_error.
TrainingStep training_step(const Graph& model, const Loss& loss, const Optimizer& optimizer,
                           const TrainingOptions& options = {});

// What the loss is on other examples, of the model for inference. The inputs are those of the model, the
// target, and the parameters in the order of the step's state. The outputs are the loss; for labels, also how
// many of them count, and of how many of these the score is the highest.
std::unique_ptr<Graph> evaluation_step(const Graph& model, const Loss& loss, const TrainingStep& step);

constexpr size_t kCountedOutput = 1, kRightOutput = 2;

// As the command line calls it.
std::string_view name_of(Loss::Kind kind);

// How many classes the labels of a target may be from, if that is known; nothing for other losses.
std::optional<int64_t> class_count(const Graph& model, const Loss& loss);

// The model for inference, with other values of the parameters of these names: it has no next values of
// statistics, and batch normalisation is by the statistics.
std::unique_ptr<Graph> with_weights(const Graph& model, const std::map<std::string, Tensor>& weights);

}  // namespace tenon
