// verify.cpp — tenon verify: is the model still the same after every pass?
#include "verify/verify.h"

#include <nlohmann/json.hpp>

#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/listen.h"
#include "cli/load_model.h"
#include "cli/numbers.h"
#include "cli/output.h"
#include "cli/verification.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  VerifyOptions verify;
  std::string numerics = "default", inputs, json;
};

void verify(Options& options) {
  if (!options.json.empty())
    check_writable(options.json);
  InputFile file(options.inputs);
  const std::unique_ptr<Graph> graph = file.load(options.model);
  options.verify.inputs = file.inputs_for(*graph);
  file.note_others();
  options.verify.numerics = parse_numerics_budget(options.numerics);
  std::optional<Progress> progress;
  options.verify.listener = listener_for(progress);
  const std::vector<PassVerification> results = verify_pipeline(*graph, options.verify);
  progress.reset();
  if (!options.json.empty())
    write_file(options.json, verification_json(results).dump(2) + "\n");
  write_output(verification_table(results));
  for (const PassVerification& result : results)
    if (result.failed())
      throw Refused();
}

}  // namespace

void add_verify(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("verify", "checks, pass by pass, that optimising a model leaves it the same");
  options->model.add_to(*command);
  CLI::Option* inputs =
      command->add_option("--inputs", options->inputs,
                          "an .npz with the inputs, by name or as input_0, input_1, …; drawn when left out");
  add_samples(*command, options->verify.samples)->excludes(inputs);
  add_tolerance(*command, options->verify.tolerance);
  command->add_option("--numerics", options->numerics, "how exact it must stay: strict, default or fast")
      ->option_text("BUDGET [default]");
  command->add_option("--json", options->json, "writes the results to this file")->option_text("FILE");
  command->footer(
      "Checks: the outputs on random inputs or those given, the gradients for inputs and parameters, the "
      "form of the "
      "graph,\n"
      "and that parameters do not grow. Exit status 1 when one fails.\n"
      "Example: tenon verify builtin:resnet_block");
  command->callback([options] { verify(*options); });
}

}  // namespace tenon::cli
