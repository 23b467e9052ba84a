// report.cpp — tenon report: everything there is to see of a model, in one page.
#include "report/report.h"

#include <nlohmann/json.hpp>

#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/listen.h"
#include "cli/made_up.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_compiled.h"
#include "verify/verify.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  std::string inputs, numerics = "default", precision = "f32", output;
  std::string device = api::default_device();
  MeasureOptions measure{.seconds = 1};
  int verify = 0;  // -1: never; 0: where it does not take long
};

std::string why_not_verified(const Options& options, const Graph& graph) {
  if (options.verify < 0)
    return "it was not wanted";
  return options.verify == 0 && is_large(graph)
             ? "the model is large, so that it would take long; ask for it with --verify"
             : "";
}

void report(const Options& options) {
  check_writable(options.output);
  refuse_overwriting(options.model, options.output);
  if (!options.inputs.empty() && is_same_file(options.inputs, options.output))
    throw user_error("{} holds the inputs, which would be lost", options.output);
  InputFile file(options.inputs);
  const std::unique_ptr<Graph> graph = file.load(options.model);
  const std::optional<Data> inputs = file.inputs_for(*graph);
  file.note_others();
  if (!inputs)
    note_open_sizes(*graph);
  std::optional<Progress> progress;
  ReportOptions how{.model = options.model.model,
                    .version = TENON_VERSION,
                    .compile = api::default_context({.numerics = parse_numerics_budget(options.numerics),
                                                     .precision = parse_precision(options.precision),
                                                     .threads = options.measure.threads,
                                                     .device = options.device}),
                    .measure = options.measure,
                    .not_verified = why_not_verified(options, *graph),
                    .verifies_on_inputs = inputs.has_value(),
                    .listener = listener_for(progress)};
  how.measure.listener = how.listener;
  show_progress(how.compile, progress);
  const auto make = [&](const Data& data) {
    return run_compiled([&] { return make_report(*graph, data, how); });
  };
  const nlohmann::ordered_json data = inputs ? make(*inputs) : with_made_up_inputs(*graph, make);
  progress.reset();
  if (options.output.ends_with(".json"))
    write_json(options.output, data);
  else
    write_file(options.output, page_of(data));
  write_output(fmt::format("wrote {}\n", options.output));
}

}  // namespace

void add_report(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "report", "writes a page that shows a model at every stage, and where its time goes");
  options->model.add_to(*command);
  command
      ->add_option("-o,--output", options->output, "the page, or the data of it where the name ends in .json")
      ->option_text("REPORT.html")
      ->required();
  add_inputs(*command, options->inputs, "made by rule");
  add_threads(*command, options->measure.threads);
  add_seconds(*command, options->measure.seconds);
  add_numerics(*command, options->numerics);
  add_precision(*command, options->precision);
  add_device(*command, options->device);
  command->add_flag(
      "--verify,!--no-verify", options->verify,
      "checks every pass as tenon verify does; left out for large models unless it is asked for");
  command->footer(examples({"tenon report builtin:attention -o report.html --seconds 0.5"}));
  command->callback([options] { report(*options); });
}

}  // namespace tenon::cli
