// train_step.cpp — tenon train-step: the training step of a model, as a model.
#include "autodiff/training_step.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/load_model.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/training_arguments.h"
#include "frontends/onnx/write/write.h"
#include "ir/print.h"
#include "optimizer/optimize_to_write.h"
#include "tensor/npy.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  StepArguments step;
  std::string output, state;
};

void check_outputs(const Options& options) {
  if (!options.output.empty()) {
    (void)optimizer::form_of(options.output);
    refuse_overwriting(options.model, options.output);
    check_writable(options.output);
  }
  if (!options.state.empty()) {
    if (!options.state.ends_with(".npz"))
      throw user_error("cannot write {}: its name must end in .npz", options.state);
    check_writable(options.state);
  }
}

void write_step(const Options& options) {
  check_outputs(options);
  const Loss loss = loss_of(options.step.training);
  const Optimizer optimizer = optimizer_of(options.step.training, options.step.steps);
  const std::unique_ptr<Graph> model = load_model(options.model, {.gives_statistics = true});
  const TrainingStep step =
      with_context([&] { return options.model.model; },
                   [&] { return training_step(*model, loss, optimizer, options_of(options.step.training)); });
  if (!options.state.empty()) {
    NamedTensors initial;
    for (const StateValue& value : step.state)
      initial.emplace_back(value.name, value.initial.tensor());
    write_npz(options.state, initial);
  }
  if (options.output.empty()) {
    write_output(print(*step.graph));
    return;
  }
  if (optimizer::form_of(options.output) == optimizer::Form::Text)
    save(*step.graph, options.output);
  else
    onnx::write_onnx(*step.graph, options.output);
  write_output(describe(step));
}

}  // namespace

void add_train_step(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("train-step", "writes the training step of a model: loss, gradients and update");
  options->model.add_to(*command);
  options->step.add_to(*command);
  offer_files(command
                  ->add_option("-o,--output", options->output,
                               "writes the step here, as .onnx or .tenon, instead of showing it")
                  ->option_text("FILE"),
              {".onnx", ".tenon"});
  offer_files(command
                  ->add_option("--state", options->state,
                               "writes what the state begins with to this .npz: the weights, and zeros")
                  ->option_text("FILE"),
              {".npz"});
  command->footer(
      examples({"tenon train-step builtin:tiny --loss mse --optimizer sgd",
                "tenon train-step builtin:mlp_softmax --loss cross_entropy -o step.onnx --state state.npz"}));
  command->callback([options] { write_step(*options); });
}

}  // namespace tenon::cli
