#include "cli/training_arguments.h"

#include <algorithm>
#include <cmath>

#include "base/names.h"
#include "base/units.h"
#include "cli/numbers.h"
#include "cli/options.h"

namespace tenon::cli {
namespace {

using Kind = Optimizer::Kind;

const std::vector<std::pair<std::string, Loss::Kind>> kLosses = {
    {"mse", Loss::Kind::SquaredError},
    {"l1", Loss::Kind::AbsoluteError},
    {"cross_entropy", Loss::Kind::CrossEntropy},
    {"bce_with_logits", Loss::Kind::BinaryCrossEntropyWithLogits}};

const std::vector<std::pair<std::string, Kind>> kOptimizers = {{"sgd", Kind::Sgd},
                                                               {"adam", Kind::Adam},
                                                               {"adamw", Kind::AdamW},
                                                               {"lion", Kind::Lion},
                                                               {"adagrad", Kind::Adagrad}};

template <class T>
std::vector<std::string> words_of(const std::vector<std::pair<std::string, T>>& table) {
  std::vector<std::string> words;
  for (const auto& [word, kind] : table)
    words.push_back(word);
  return words;
}

template <class T>
T find(const std::vector<std::pair<std::string, T>>& table, const std::string& word) {
  return std::ranges::find(table, word, &std::pair<std::string, T>::first)->second;
}

struct Range {
  double least, most;
  bool with_most = true;
};
constexpr double kAnything = 1e30;

void add_number(CLI::App& command, const std::string& name, std::optional<double>& number,
                const std::string& doc, Range range) {
  const auto check = [range](const std::string& text) -> std::string {
    double given = 0;
    const bool fits = CLI::detail::lexical_cast(text, given) && given >= range.least &&
                      (range.with_most ? given <= range.most : given < range.most);
    if (fits)
      return "";
    if (range.most == kAnything)
      return fmt::format("it must be a number from {} up, but is {}", range.least, text);
    return fmt::format("it must be a number from {} to {}{}, but is {}", range.least,
                       range.with_most ? "" : "below ", range.most, text);
  };
  command.add_option(name, number, doc)->check(CLI::Validator(check, ""))->option_text("X");
}

// That an option is given to those alone which have a use for it.
void check_use(bool is_given, std::string_view option, bool is_used, std::string_view by,
               const std::string& chosen) {
  if (is_given && !is_used)
    throw user_error("{} is for {}, but what was chosen is {}", option, by, chosen);
}

LearningRate rate_of(const TrainingArguments& arguments, LearningRate rate, std::optional<int64_t> steps) {
  using Schedule = LearningRate::Schedule;
  const std::string& schedule = arguments.schedule;
  const bool is_cosine = schedule == "cosine", is_step = schedule == "step";
  check_use(arguments.lowest_rate.has_value(), "--lowest-rate", is_cosine, "--schedule cosine", schedule);
  check_use(arguments.decay_every.has_value(), "--decay-every", is_step, "--schedule step", schedule);
  check_use(arguments.decay_factor.has_value(), "--decay-factor", is_step, "--schedule step", schedule);
  if (is_cosine && !steps)
    throw user_error("--schedule cosine ends with the last step\n  hint: --steps says how many there are");
  if (is_step && !arguments.decay_every)
    throw user_error("--schedule step changes the rate after --decay-every steps, which is not given");
  rate.schedule = is_cosine ? Schedule::Cosine : is_step ? Schedule::Step : Schedule::Constant;
  rate.rate = arguments.rate.value_or(rate.rate);
  rate.warmup = arguments.warmup;
  rate.steps = is_cosine ? *steps : 0;
  rate.lowest = arguments.lowest_rate.value_or(rate.lowest);
  rate.every = arguments.decay_every.value_or(rate.every);
  rate.factor = arguments.decay_factor.value_or(rate.factor);
  return rate;
}

}  // namespace

void TrainingArguments::add_to(CLI::App& command) {
  add_choice(command, "--loss", loss, "of the model's first output, and a target", words_of(kLosses))
      ->required()
      ->default_str("");
  add_number(command, "--label-smoothing", label_smoothing,
             "of cross_entropy: the share of a label that all classes have", {0, 1});
  command.add_option("--ignore-label", ignored_label, "of cross_entropy: a label that does not count")
      ->option_text("N");
  add_choice(command, "--optimizer", optimizer, "how weights follow from gradients", words_of(kOptimizers));
  add_number(command, "--learning-rate", rate,
             "1e-3 where left out, as in PyTorch; 1e-4 of lion, 1e-2 of adagrad", {0, kAnything});
  add_number(command, "--momentum", momentum, "of sgd", {0, kAnything});
  add_number(command, "--dampening", dampening, "of sgd with momentum", {0, 1});
  command.add_flag("--nesterov", nesterov, "has sgd with momentum look ahead");
  add_number(command, "--beta1", beta1, "of adam, adamw, lion: 0.9 where left out", {0, 1, false});
  add_number(command, "--beta2", beta2, "likewise: 0.999, 0.99 of lion", {0, 1, false});
  add_number(command, "--epsilon", epsilon, "of adam, adamw, adagrad: 1e-8, 1e-10 of adagrad",
             {0, kAnything});
  add_number(command, "--weight-decay", weight_decay, "0 where left out, 0.01 of adamw", {0, kAnything});
  add_number(command, "--clip-norm", clip_norm, "scales gradients down to this norm of all together",
             {0, kAnything});
  add_count(command, "--accumulate", accumulate, "sums gradients over so many batches for each step");
  add_choice(command, "--schedule", schedule, "how the learning rate changes",
             {"constant", "cosine", "step"});
  command.add_option("--warmup", warmup, "steps over which the learning rate rises from 0")
      ->check(CLI::NonNegativeNumber)
      ->option_text("N")
      ->capture_default_str();
  add_number(command, "--lowest-rate", lowest_rate, "where cosine ends: 0 where left out", {0, kAnything});
  add_count(command, "--decay-every", decay_every, "of step: how many steps each rate holds");
  add_number(command, "--decay-factor", decay_factor, "of step: what the rate is multiplied by, 0.1",
             {0, kAnything});
  command.add_option("--freeze", frozen, "weights that stay as they are, by name; * stands for anything")
      ->delimiter(',')
      ->option_text("NAME,...");
}

void StepArguments::add_to(CLI::App& command) {
  training.add_to(command);
  add_count(command, "--steps", steps, "how many steps the schedule is for");
}

StepArguments parse_step_arguments(std::vector<std::string> words) {
  StepArguments arguments;
  CLI::App command;
  arguments.add_to(command);
  std::ranges::reverse(words);  // as CLI11 takes them
  try {
    command.parse(words);
  } catch (const CLI::ParseError& error) {
    throw user_error("{}", error.what());
  }
  return arguments;
}

Loss loss_of(const TrainingArguments& arguments) {
  const bool is_of_classes = arguments.loss == "cross_entropy";
  check_use(arguments.label_smoothing.has_value(), "--label-smoothing", is_of_classes, "--loss cross_entropy",
            arguments.loss);
  check_use(arguments.ignored_label.has_value(), "--ignore-label", is_of_classes, "--loss cross_entropy",
            arguments.loss);
  return {.kind = find(kLosses, arguments.loss),
          .smoothing = arguments.label_smoothing.value_or(0),
          .ignored = arguments.ignored_label};
}

Optimizer optimizer_of(const TrainingArguments& arguments, std::optional<int64_t> steps) {
  const Kind kind = find(kOptimizers, arguments.optimizer);
  const bool is_sgd = kind == Kind::Sgd, is_adam = kind == Kind::Adam || kind == Kind::AdamW;
  const auto check = [&](bool is_given, std::string_view option, bool is_used, std::string_view by) {
    check_use(is_given, option, is_used, by, arguments.optimizer);
  };
  check(arguments.momentum.has_value(), "--momentum", is_sgd, "sgd");
  check(arguments.dampening.has_value(), "--dampening", is_sgd, "sgd");
  check(arguments.nesterov, "--nesterov", is_sgd, "sgd");
  check(arguments.beta1.has_value(), "--beta1", is_adam || kind == Kind::Lion, "adam, adamw and lion");
  check(arguments.beta2.has_value(), "--beta2", is_adam || kind == Kind::Lion, "adam, adamw and lion");
  check(arguments.epsilon.has_value(), "--epsilon", is_adam || kind == Kind::Adagrad,
        "adam, adamw and adagrad");
  if (arguments.clip_norm == 0)
    throw user_error("--clip-norm 0 would leave nothing of the gradients");
  Optimizer optimizer = default_options(kind);
  optimizer.rate = rate_of(arguments, optimizer.rate, steps);
  optimizer.momentum = arguments.momentum.value_or(0);
  optimizer.dampening = arguments.dampening.value_or(0);
  optimizer.nesterov = arguments.nesterov;
  optimizer.beta1 = arguments.beta1.value_or(optimizer.beta1);
  optimizer.beta2 = arguments.beta2.value_or(optimizer.beta2);
  optimizer.epsilon = arguments.epsilon.value_or(optimizer.epsilon);
  optimizer.weight_decay = arguments.weight_decay.value_or(optimizer.weight_decay);
  return optimizer;
}

TrainingOptions options_of(const TrainingArguments& arguments) {
  return {.frozen = arguments.frozen,
          .clip_norm = arguments.clip_norm.value_or(0),
          .parts = arguments.accumulate.value_or(1)};
}

std::string describe(const TrainingStep& step) {
  int64_t numbers = 0, bytes = 0;
  for (size_t i = 0; i < step.state.size(); ++i) {
    const Literal& initial = step.state[i].initial;
    numbers += i < step.weights ? initial.count() : 0;
    bytes += initial.count() * info(initial.dtype()).bytes;
  }
  std::string text = fmt::format("{}, {} numbers; the state takes {}\n", format_count(step.weights, "weight"),
                                 numbers, format_bytes(static_cast<double>(bytes)));
  if (step.statistics > 0)
    text += fmt::format("{} gathered in training\n", format_count(step.statistics, "statistic"));
  if (step.drops_activation)
    text += "the loss expects logits, so it skips the activation that the model ends in\n";
  if (!step.unreached.empty())
    text += fmt::format("the loss does not depend on {}\n", first_few(step.unreached));
  return text;
}

}  // namespace tenon::cli
