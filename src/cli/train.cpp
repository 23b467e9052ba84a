// train.cpp — tenon train: trains a model on the examples of an .npz.
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "autodiff/training_step.h"
#include "base/hash.h"
#include "base/progress.h"
#include "base/units.h"
#include "base/write_file.h"
#include "cli/checkpoint.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_compiled.h"
#include "cli/training_arguments.h"
#include "cli/training_data.h"
#include "cli/validation.h"
#include "frontends/onnx/write/write.h"
#include "ir/print.h"
#include "optimizer/optimize_to_write.h"
#include "optimizer/source.h"
#include "runtime/stateful_run.h"
#include "tensor/wide.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  TrainingArguments training;
  std::string data, target = "target", validate, keep = "last", output, checkpoint, numerics = "default";
  std::optional<int64_t> epochs, steps, batch, checkpoint_every, log_every;
  uint64_t seed = 0;
  int threads = 0;
  bool in_order = false, resumes = false;
};

constexpr int64_t kDefaultBatch = 32;

bool keeps_best(const Options& options) { return options.keep == "best"; }

void check_options(const Options& options) {
  if (options.epochs && options.steps)
    throw user_error("--epochs and --steps both say how long it trains");
  for (const auto& [is_given, name] : {std::pair(options.resumes, "--resume"),
                                       std::pair(options.checkpoint_every.has_value(), "--checkpoint-every")})
    if (is_given && options.checkpoint.empty())
      throw user_error("{} is for a checkpoint, which --checkpoint names", name);
  if (keeps_best(options) && (options.validate.empty() || options.output.empty()))
    throw user_error("--keep best is for the model of -o, by the loss on the examples of --validate");
  if (options.output.empty() && options.checkpoint.empty())
    throw user_error("nothing would be kept\n  hint: -o names the trained model, --checkpoint the state");
  if (!options.output.empty()) {
    (void)optimizer::form_of(options.output);
    refuse_overwriting(options.model, options.output);
    check_writable(options.output);
  }
  if (!options.checkpoint.empty()) {
    if (!options.checkpoint.ends_with(".npz"))
      throw user_error("cannot write {}: its name must end in .npz", options.checkpoint);
    for (const std::string& examples : {options.data, options.validate})
      if (!examples.empty() && is_same_file(options.checkpoint, examples))
        throw user_error("{} holds the examples, which would be lost", examples);
    check_writable(options.checkpoint);
  }
}

// --- what is trained ---

// The model for batches of one size, the step, and the examples for it.
class Training {
 public:
  explicit Training(const Options& options) : options_(options), file_(options.data, options.target) {
    model_ = file_.load(options.model);
    std::vector<Tensor> arrays = find_inputs();
    const std::unique_ptr<Graph> bound = bind(arrays);
    // The schedule may depend on how many batches there are.
    const int64_t per_step = batch_ * parts();
    batches_ = arrays.front().extent(0) / per_step;
    if (options.epochs && *options.epochs > std::numeric_limits<int64_t>::max() / batches_)
      throw user_error("--epochs {}: more steps than can be counted", *options.epochs);
    loss_ = loss_of(options.training);
    const Optimizer optimizer = optimizer_of(options.training, steps());
    step_ =
        with_context([&] { return options.model.model; },
                     [&] { return training_step(*bound, loss_, optimizer, options_of(options.training)); });
    const Type target = step_.graph->input(static_cast<int64_t>(step_.target)).type();
    arrays.push_back(file_.target(target, *bound, loss_, arrays.front().extent(0)));
    file_.note_others();
    plan_ = {
        .seed = static_cast<int64_t>(options.seed), .batch = per_step, .examples = arrays.front().extent(0)};
    data_.emplace(std::move(arrays), per_step,
                  TrainingData::Order{.seed = options.seed, .shuffles = !options.in_order});
  }

  const Graph& model() const { return *model_; }
  const Loss& loss() const { return loss_; }
  TrainingStep& step() { return step_; }
  int64_t batch() const { return batch_; }
  TrainingData& data() { return *data_; }
  const TrainingPlan& plan() const { return plan_; }
  int64_t steps() const { return options_.steps.value_or(options_.epochs.value_or(1) * batches_); }

 private:
  int64_t parts() const { return options_.training.accumulate.value_or(1); }  // of a step

  std::vector<Tensor> find_inputs() {
    if (model_->inputs().empty())
      throw user_error("{}: the model has no inputs", options_.model.model);
    return file_.inputs(*model_);
  }

  // Sizes that are open are those of the examples.
  std::unique_ptr<Graph> bind(const std::vector<Tensor>& arrays) {
    const int64_t examples = arrays.front().extent(0);
    const Value input = model_->input(0);
    const std::optional<int64_t> fixed =
        input.type().is_tensor() && input.shape().ranked() && input.rank() > 0 ? input.dim(0).constant()
                                                                               : std::nullopt;
    if (fixed && options_.batch && *options_.batch != *fixed)
      throw user_error(
          "--batch {}: the batches of {} are of {}\n  hint: export it with a dynamic first dimension",
          *options_.batch, options_.model.model, *fixed);
    batch_ = fixed ? *fixed : options_.batch.value_or(std::min(kDefaultBatch, examples));
    if (batch_ < 1 || examples < batch_)
      throw user_error("{}: {} examples do not fill a batch of {}", options_.data, examples, batch_);
    if (examples / batch_ < parts())
      throw user_error("{}: {} examples do not fill {} batches of {}", options_.data, examples, parts(),
                       batch_);
    return bind_to_batch(*model_, arrays, batch_);
  }

  const Options& options_;
  ExampleFile file_;
  std::unique_ptr<Graph> model_;
  int64_t batch_ = 0, batches_ = 0;
  Loss loss_;
  TrainingStep step_;
  TrainingPlan plan_;
  std::optional<TrainingData> data_;
};

// --- the run ---

std::vector<runtime::StatefulRun::Pair> pairs_of(const TrainingStep& step) {
  std::vector<runtime::StatefulRun::Pair> pairs;
  for (const StateValue& value : step.state)
    pairs.push_back({value.input, value.output});
  return pairs;
}

Checkpoint start_of(const Options& options, const Training& training, const TrainingStep& step) {
  if (options.resumes && std::filesystem::exists(options.checkpoint)) {
    Checkpoint checkpoint = read_checkpoint(options.checkpoint, step);
    if (checkpoint.plan != training.plan())
      write_note(fmt::format("note: {} was made with other examples, or another --batch or --seed\n",
                             options.checkpoint));
    checkpoint.plan = training.plan();
    return checkpoint;
  }
  Checkpoint checkpoint = {.plan = training.plan()};
  for (const StateValue& value : step.state)
    checkpoint.state.push_back(value.initial.tensor());
  return checkpoint;
}

class Trainer {
 public:
  explicit Trainer(const Options& options)
      : options_(options), training_(options), start_(start_of(options, training_, training_.step())) {}

  void train() {
    TrainingStep& step = training_.step();
    std::string text = describe(step);
    const std::shared_ptr<const runtime::Executor> executor = compile(*step.graph);
    if (!options_.validate.empty())
      validation_.emplace(options_.validate, options_.target, training_.model(), training_.loss(), step,
                          training_.batch(),
                          [this](std::unique_ptr<Graph> graph) { return compile(*graph); });
    runtime::StatefulRun run(executor, pairs_of(step), start_.state);
    text += fmt::format("updated in place: {} of {}\n", run.in_place(), step.state.size());
    if (training_.data().dropped() > 0)
      text += fmt::format("{} of each epoch dropped, which do not fill a {}\n",
                          format_count(static_cast<uint64_t>(training_.data().dropped()), "example"),
                          training_.batch() == training_.plan().batch ? "batch" : "step");
    if (validation_ && validation_->dropped() > 0)
      text += fmt::format("{} of {} dropped, which do not fill a batch\n",
                          format_count(static_cast<uint64_t>(validation_->dropped()), "example"),
                          options_.validate);
    write_output(text);
    const int64_t first = as_int(start_.state.back()), last = training_.steps();
    if (first >= last)
      write_output(fmt::format("{} has {} steps already\n", options_.checkpoint, first));
    else if (first > 0)
      write_output(fmt::format("resuming from {} after {} steps\n", options_.checkpoint, first));
    run_steps(run, first, last);
    if (!options_.output.empty())
      report_model();
  }

 private:
  void report_model() const {
    if (has_written_) {
      write_output(
          fmt::format("wrote {}: {}\n", options_.output,
                      format_bytes(static_cast<double>(std::filesystem::file_size(options_.output)))));
      return;
    }
    // Only --keep best may have written none.
    if (!std::isfinite(start_.best))
      throw user_error("{} was not written: the loss on {} was never a finite number", options_.output,
                       options_.validate);
    if (!std::filesystem::exists(options_.output))
      throw user_error(
          "{} was not written: the lowest loss on {} was before {}, which has the last state alone",
          options_.output, options_.validate, options_.checkpoint);
    write_output(fmt::format("kept {} of the earlier run\n", options_.output));
  }

  std::shared_ptr<const runtime::Executor> compile(Graph& graph) {
    const NumericsBudget numerics = parse_numerics_budget(options_.numerics);
    optimize_model(graph, numerics);
    return compile_model(
        graph, api::default_context({.numerics = numerics, .threads = options_.threads, .device = "cpu"}));
  }

  void run_steps(runtime::StatefulRun& run, int64_t first, int64_t last) {
    const int64_t batches = training_.data().batches();
    const int64_t log_every = options_.log_every.value_or(batches);
    const int64_t checkpoint_every = options_.checkpoint_every.value_or(batches);
    Progress progress("training", last - first);
    for (int64_t number = first; number < last; ++number) {
      progress.step(fmt::format("step {}", number + 1));
      const Data outputs = run_step(run, number);
      const int64_t done = number + 1;
      const double loss = as_double(outputs[kLossOutput].tensor());
      if (!std::isfinite(loss))
        throw user_error("the loss is {} in step {}{}\n  hint: a smaller --learning-rate, or --clip-norm",
                         loss, done, kept_before());
      start_.loss += loss;
      ++start_.of_steps;
      if (done % log_every == 0 || done == last) {
        progress.clear();
        log(done, as_double(outputs[kRateOutput].tensor()));
      }
      if (validation_ && (done % batches == 0 || done == last)) {
        progress.clear();
        validate(run, done);
      }
      if (done == last || (!options_.checkpoint.empty() && done % checkpoint_every == 0))
        keep(run);
    }
    if (first >= last)
      keep(run);
  }

  void validate(const runtime::StatefulRun& run, int64_t done) {
    const TrainingStep& step = training_.step();
    std::vector<Tensor> weights;
    for (size_t i = 0; i < count_parameters(step); ++i)
      weights.push_back(run.state(i));
    const Validation::Result result =
        validation_->measure(weights, {.seed = options_.seed, .threads = options_.threads});
    const bool is_best = result.loss < start_.best;
    if (is_best)
      start_.best = result.loss;
    write_output(fmt::format("epoch {}, step {}: {}{}\n", epoch_of(done), done, describe(result),
                             is_best && keeps_best(options_) ? ", the best so far" : ""));
    flush_output();
    if (is_best && keeps_best(options_))
      write_model(weights);
  }

  int64_t epoch_of(int64_t done) { return (done - 1) / training_.data().batches() + 1; }

  Data run_step(runtime::StatefulRun& run, int64_t number) {
    // Random ops draw other numbers in each step, and the same ones after a break.
    const runtime::RunOptions how = {.seed = hash_combine(options_.seed, static_cast<uint64_t>(number)),
                                     .threads = options_.threads};
    return run_compiled([&] { return run.run(training_.data().batch(number), how); });
  }

  void log(int64_t done, double rate) {
    write_output(fmt::format("epoch {}, step {}: loss {:.6g}, learning rate {:.4g}\n", epoch_of(done), done,
                             start_.loss / static_cast<double>(start_.of_steps), rate));
    flush_output();
    start_.loss = 0;
    start_.of_steps = 0;
  }

  // The model first: what the state is ahead of, training would not make again.
  void keep(const runtime::StatefulRun& run) {
    const TrainingStep& step = training_.step();
    for (size_t i = 0; i < step.state.size(); ++i)
      start_.state[i] = run.state(i);
    if (!options_.output.empty() && !keeps_best(options_))
      write_model(
          {start_.state.begin(), start_.state.begin() + static_cast<std::ptrdiff_t>(count_parameters(step))});
    if (!options_.checkpoint.empty()) {
      write_checkpoint(options_.checkpoint, step, start_);
      has_kept_ = true;
    }
  }

  void write_model(const std::vector<Tensor>& weights) {
    std::map<std::string, Tensor> by_name;
    for (size_t i = 0; i < weights.size(); ++i)
      by_name.emplace(training_.step().state[i].weight, weights[i]);
    const std::unique_ptr<Graph> trained = with_weights(training_.model(), by_name);
    if (optimizer::form_of(options_.output) == optimizer::Form::Text)
      save(*trained, options_.output);
    else
      onnx::write_onnx(*trained, options_.output);
    has_written_ = true;
  }

  std::string kept_before() const {
    return has_kept_ ? fmt::format("; {} has the state of a step before", options_.checkpoint) : "";
  }

  const Options& options_;
  Training training_;
  std::optional<Validation> validation_;
  Checkpoint start_;                             // and what is kept from then on
  bool has_kept_ = false, has_written_ = false;  // the checkpoint, the model
};

}  // namespace

void add_train(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("train", "trains a model on examples");
  options->model.add_to(*command);
  offer_files(command
                  ->add_option("--data", options->data,
                               "an .npz with the examples: the model's inputs, by name or as input_0, …, and "
                               "the target, each with one row for an example")
                  ->option_text("FILE")
                  ->required(),
              {".npz"});
  command->add_option("--target", options->target, "the array that says what the model should give")
      ->option_text("NAME")
      ->capture_default_str();
  offer_files(
      command
          ->add_option(
              "--validate", options->validate,
              "an .npz with other examples: prints the loss on these, and the accuracy, after each epoch")
          ->option_text("FILE"),
      {".npz"});
  add_choice(*command, "--keep", options->keep,
             "which model -o gets: the last, or the one with the lowest loss on the examples of --validate",
             {"last", "best"});
  options->training.add_to(*command);
  add_count(*command, "--epochs", options->epochs, "passes over the examples: by default 1");
  add_count(*command, "--steps", options->steps, "how many batches to train on, instead of --epochs");
  add_count(*command, "--batch", options->batch,
            "examples in each batch: by default 32, or as many as the model fixes");
  add_seed(*command, options->seed)->description("of the order of examples, and of the model's random ops");
  command->add_flag("--in-order", options->in_order, "takes the examples in the order of the file");
  offer_files(command
                  ->add_option("-o,--output", options->output,
                               "writes the model with its trained weights here, as .onnx or .tenon")
                  ->option_text("FILE"),
              {".onnx", ".tenon"});
  offer_files(command
                  ->add_option("--checkpoint", options->checkpoint,
                               "writes the state to this .npz, and the model to -o, while training")
                  ->option_text("FILE"),
              {".npz"});
  add_count(*command, "--checkpoint-every", options->checkpoint_every,
            "every so many steps: by default after each epoch");
  command->add_flag("--resume", options->resumes, "resumes from the checkpoint, if there is one");
  add_count(*command, "--log-every", options->log_every,
            "prints the mean loss every so many steps: by default after each epoch");
  add_numerics(*command, options->numerics);
  add_threads(*command, options->threads);
  command->footer(examples(
      {"tenon train docs/training/rings.tenon --data docs/training/rings.npz --loss cross_entropy -o a.onnx",
       "tenon train docs/training/rings.tenon --data docs/training/rings.npz --loss cross_entropy "
       "--epochs 20 --learning-rate 0.02 --schedule cosine --warmup 10 --checkpoint state.npz --resume"}));
  command->callback([options] {
    check_options(*options);
    Trainer(*options).train();
  });
}

}  // namespace tenon::cli
