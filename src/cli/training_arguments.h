// training_arguments.h — the options of what a training step computes.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "autodiff/training_step.h"

namespace tenon::cli {

struct TrainingArguments {
  std::string loss, optimizer = "adamw", schedule = "constant";
  std::optional<double> label_smoothing, rate, momentum, dampening, beta1, beta2, epsilon, weight_decay,
      clip_norm, lowest_rate, decay_factor;
  std::optional<int64_t> ignored_label, decay_every, accumulate;
  int64_t warmup = 0;
  bool nesterov = false;
  std::vector<std::string> frozen;

  void add_to(CLI::App& command);
};

// Those of one step by itself.
struct StepArguments {
  TrainingArguments training;
  std::optional<int64_t> steps;  // that the schedule is for

  void add_to(CLI::App& command);
};
// From words such as --loss=mse, for callers without a command line.
StepArguments parse_step_arguments(std::vector<std::string> words);

// Options that do not go together are the user's fault. The schedule is for so many steps, where that is
// known.
Loss loss_of(const TrainingArguments& arguments);
Optimizer optimizer_of(const TrainingArguments& arguments, std::optional<int64_t> steps);
TrainingOptions options_of(const TrainingArguments& arguments);

// "2 weights of 3 dimensions …": what is trained, and what its state takes.
std::string describe(const TrainingStep& step);

}  // namespace tenon::cli
