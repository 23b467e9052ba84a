// bisect.cpp — tenon bisect: the one rewrite that changes what a model computes.
#include "verify/bisect.h"

#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/culprit.h"
#include "cli/listen.h"
#include "cli/load_model.h"
#include "cli/numbers.h"
#include "cli/output.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  BisectOptions bisect;
  std::string numerics = "default", inputs, expected, output = "bisect.onnx";
};

void check_output(const std::filesystem::path& output) {
  if (output.extension() != ".onnx" && output.extension() != ".tenon")
    throw user_error("cannot write {}: its name must end in .onnx or .tenon", output.string());
  check_writable(output);
}

// The model, and in the options its inputs and expected outputs as far as files have them.
std::unique_ptr<Graph> load(Options& options) {
  if (options.inputs.empty() && !options.expected.empty())
    throw user_error("--expected says what comes out for some inputs: give those with --inputs");
  InputFile file(options.inputs);
  std::unique_ptr<Graph> graph = file.load(options.model);
  options.bisect.inputs = file.inputs_for(*graph);
  if (!options.expected.empty())
    options.bisect.expected = read_outputs(options.expected, *graph);
  return graph;
}

std::string text_of(const WrittenCulprit& written) {
  std::string text;
  if (!written.why_not_onnx.empty())
    text += fmt::format("  no ONNX model shows it: {}\n", written.why_not_onnx);
  text += fmt::format("  {} shows it", written.model.string());
  return text +
         (written.inputs.empty() ? "\n" : fmt::format(", on the inputs in {}\n", written.inputs.string()));
}

void run(Options& options) {
  check_output(options.output);
  options.bisect.verify.numerics = parse_numerics_budget(options.numerics);
  const std::unique_ptr<Graph> graph = load(options);
  std::optional<Progress> progress;
  options.bisect.verify.listener = listener_for(progress);
  const std::optional<Culprit> culprit = bisect(*graph, options.bisect);
  progress.reset();
  if (!culprit) {
    write_output("no rewrite changes what the model computes\n");
    return;
  }
  options.bisect.verify.listener = {};
  write_output(describe_culprit(*culprit));
  write_output(culprit->model ? text_of(write_culprit(*culprit, options.output, options.bisect))
                              : "  no smaller model shows it\n");
  throw Refused();
}

}  // namespace

void add_bisect(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("bisect", "finds the one rewrite that changes what a model computes");
  options->model.add_to(*command);
  command->add_option("--inputs", options->inputs,
                      "an .npz with the inputs, by name or as input_0, input_1, …; drawn when left out");
  command->add_option("--expected", options->expected,
                      "an .npz with what should come out for them, by name or as output_0, …; computed when "
                      "left out");
  command
      ->add_option("-o", options->output, "where a small model that shows it is written, as .onnx or .tenon")
      ->option_text("FILE [bisect.onnx]");
  add_tolerance(*command, options->bisect.verify.tolerance);
  command->add_option("--numerics", options->numerics, "how exact it must stay: strict, default or fast")
      ->option_text("BUDGET [default]");
  command->footer("Exit status 1 when there is such a rewrite.\nExample: tenon bisect model.onnx");
  command->callback([options] { run(*options); });
}

}  // namespace tenon::cli
