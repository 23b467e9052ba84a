// bisect.cpp — tenon bisect: the one rewrite, or kernel, that changes what a model computes.
#include "verify/bisect.h"

#include <nlohmann/json.hpp>

#include "api/default_context.h"
#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/culprit.h"
#include "cli/listen.h"
#include "cli/load_model.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/saturation.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  BisectOptions bisect;
  std::string numerics = "default", inputs, expected, output = "bisect.onnx", json;
  std::optional<double> saturate;
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

nlohmann::ordered_json as_json(const Culprit& culprit, const std::optional<WrittenCulprit>& written) {
  const Application& rewrite = culprit.application;
  if (culprit.program) {
    nlohmann::ordered_json json = {{"found", true},
                                   {"level", name(culprit.level)},
                                   {"part", culprit.program->part},
                                   {"kernel", nullptr},
                                   {"nodes", culprit.program->sources},
                                   {"error", culprit.numbers.error},
                                   {"detail", culprit.numbers.detail}};
    if (culprit.program->kernel)
      json["kernel"] = *culprit.program->kernel;
    return json;
  }
  return {{"found", true},
          {"level", name(culprit.level)},
          {"rewrite", rewrite.number},
          {"rule", rewrite.rule},
          {"pass", rewrite.pass},
          {"numerics", name(rewrite.numerics)},
          {"nodes", rewrite.nodes},
          {"error", culprit.numbers.error},
          {"detail", culprit.numbers.detail},
          {"model", written ? written->model.string() : ""},
          {"inputs", written ? written->inputs.string() : ""}};
}

void run(Options& options) {
  check_output(options.output);
  check_json(options.json);
  options.bisect.verify.numerics = parse_numerics_budget(options.numerics);
  options.bisect.verify.pipeline = pipeline_for(options.saturate);
  options.bisect.context =
      api::default_context({.numerics = options.bisect.verify.numerics, .device = "cpu"});
  const std::unique_ptr<Graph> graph = load(options);
  std::optional<Progress> progress;
  options.bisect.verify.listener = listener_for(progress);
  const std::optional<Culprit> culprit = bisect(*graph, options.bisect);
  progress.reset();
  if (!culprit)
    return write_results(std::string(kNoCulprit), options.json, {{"found", false}});
  options.bisect.verify.listener = {};
  std::optional<WrittenCulprit> written;
  if (culprit->model)
    written = write_culprit(*culprit, options.output, options.bisect);
  const std::string shown_by = written            ? text_of(*written)
                               : culprit->program ? ""
                                                  : "  no smaller model shows it\n";
  write_results(describe_culprit(*culprit) + shown_by, options.json, as_json(*culprit, written));
  throw Refused();
}

}  // namespace

void add_bisect(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("bisect", "finds the one rewrite or kernel that changes what a model computes");
  options->model.add_to(*command);
  add_inputs(*command, options->inputs, "drawn");
  offer_files(
      command
          ->add_option(
              "--expected", options->expected,
              "an .npz with what should come out for them, by name or as output_0, …; computed when left "
              "out")
          ->option_text("FILE"),
      {".npz"});
  offer_files(command
                  ->add_option("-o,--output", options->output,
                               "where a small model that shows it is written, as .onnx or .tenon")
                  ->option_text("FILE")
                  ->capture_default_str(),
              {".onnx", ".tenon"});
  add_tolerance(*command, options->bisect.verify.tolerance);
  add_numerics(*command, options->numerics);
  add_saturate(*command, options->saturate);
  add_json(*command, options->json);
  command->footer(
      "Exit status 1 when there is one.\n" +
      examples({"tenon bisect builtin:mha_causal", "tenon bisect builtin:resnet_block --json -"}));
  command->callback([options] { run(*options); });
}

}  // namespace tenon::cli
