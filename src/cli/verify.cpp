// verify.cpp — tenon verify: is the model still the same after every pass, and once it is compiled?
#include "verify/verify.h"

#include <nlohmann/json.hpp>

#include "api/default_context.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/listen.h"
#include "cli/load_model.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/saturation.h"
#include "cli/verification.h"
#include "verify/verify_compiled.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  VerifyOptions verify;
  std::string numerics = "default", gradients = "auto", inputs, json;
  std::string device = api::default_device();
  std::optional<double> saturate;
};

GradientChecks parse_gradients(const std::string& word) {
  return word == "always"  ? GradientChecks::Always
         : word == "never" ? GradientChecks::Never
                           : GradientChecks::Auto;
}

void verify(Options& options) {
  check_json(options.json);
  InputFile file(options.inputs);
  const std::unique_ptr<Graph> graph = file.load(options.model);
  options.verify.inputs = file.inputs_for(*graph);
  file.note_others();
  options.verify.numerics = parse_numerics_budget(options.numerics);
  options.verify.pipeline = pipeline_for(options.saturate);
  options.verify.gradients = parse_gradients(options.gradients);
  std::optional<Progress> progress;
  options.verify.listener = listener_for(progress);
  const std::vector<PassVerification> results = verify_model(
      *graph, api::default_context({.numerics = options.verify.numerics, .device = options.device}),
      options.verify);
  progress.reset();
  write_results(verification_table(results), options.json, verification_json(results));
  for (const PassVerification& result : results)
    if (result.failed())
      throw Refused();
}

}  // namespace

void add_verify(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "verify", "checks, pass by pass, that optimising and compiling a model leaves it the same");
  options->model.add_to(*command);
  CLI::Option* inputs = add_inputs(*command, options->inputs, "drawn");
  add_samples(*command, options->verify.samples)->excludes(inputs);
  add_tolerance(*command, options->verify.tolerance);
  add_numerics(*command, options->numerics);
  add_saturate(*command, options->saturate);
  add_choice(*command, "--gradients", options->gradients,
             "whether gradients are compared; auto: unless the model is large", {"auto", "always", "never"});
  add_device(*command, options->device);
  add_json(*command, options->json);
  command->footer(
      "Checks: the outputs on random inputs or those given, the gradients for inputs and parameters, the "
      "form of the graph,\n"
      "and that parameters do not grow; then the passes for this machine, lowering, the passes over the "
      "kernel "
      "graph and\n"
      "the schedules, node by node, and the compiled program. Exit status 1 when one fails.\n" +
      examples({"tenon verify builtin:attention",
                "tenon verify builtin:resnet_block --samples 1 --json verified.json"}));
  command->callback([options] { verify(*options); });
}

}  // namespace tenon::cli
