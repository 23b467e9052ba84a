// profile.cpp — tenon profile: where the time of a compiled model goes, step by step.
#include <nlohmann/json.hpp>

#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/listen.h"
#include "cli/made_up.h"
#include "cli/milliseconds.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_compiled.h"
#include "cli/saved_model.h"
#include "report/print_profile.h"

namespace tenon::cli {

using compiler::ExplainedProgram;

namespace {

struct Options {
  ModelArguments model;
  std::string inputs, numerics = "default", precision = "f32", json, trace;
  std::string device = api::default_device();
  MeasureOptions measure;
  int64_t top = 20;
};

// As far as a saved program says what its kernels do.
ExplainedProgram open_explained(const std::string& program) {
  compiler::OpenedProgram opened = open_saved_program(program);
  ExplainedProgram explained;
  explained.executor = std::move(opened.executor);
  for (const Dim& operations : opened.operations)
    explained.fusion.after.push_back({.sources = {}, .cost = {.operations = operations}, .contraction = {}});
  return explained;
}

void profile(const Options& options) {
  check_json(options.json);
  if (!options.trace.empty())
    check_writable(options.trace);
  for (const std::string& file : {options.json, options.trace})
    refuse_overwriting(options.model, file);
  if (!options.json.empty() && !options.trace.empty() && is_same_file(options.json, options.trace))
    throw user_error("--json and --trace are the same file, {}", options.json);
  Preparation preparation;
  InputFile file(options.inputs);
  std::unique_ptr<Graph> graph;
  preparation.reading = milliseconds_of([&] { graph = file.load(options.model); }) / 1e3;
  const std::optional<Data> inputs = file.inputs_for(*graph);
  file.note_others();
  if (!inputs)
    note_open_sizes(*graph);
  name_nodes(*graph);
  const Modules modules(*graph);
  const std::unique_ptr<Graph> as_read = graph->clone();
  ExplainedProgram compiled;
  if (is_saved_program(options.model.model)) {
    preparation.compiling = milliseconds_of([&] { compiled = open_explained(options.model.model); }) / 1e3;
  } else {
    const NumericsBudget numerics = parse_numerics_budget(options.numerics);
    Journal journal(numerics);
    preparation.passes = optimize_model(*graph, journal);
    preparation.compiling =
        milliseconds_of([&] {
          compiled = compile_model_explained(
              *graph, api::default_context({.numerics = numerics,
                                            .precision = parse_precision(options.precision),
                                            .threads = options.measure.threads,
                                            .device = options.device}));
        }) /
        1e3;
  }

  std::optional<Progress> progress;
  MeasureOptions how = options.measure;
  how.listener = listener_for(progress);
  const auto run = [&](const Data& data) {
    return run_compiled(
        [&] { return measure(*compiled.executor, compiled.fusion, data, this_machine(), how); });
  };
  const Measurement measurement = inputs ? run(*inputs) : with_made_up_inputs(*as_read, run);
  progress.reset();
  write_results(print_profile(measurement, modules, static_cast<size_t>(options.top)), options.json,
                profile_as_json(options.model.model, measurement, modules));
  if (!options.trace.empty())
    write_json(options.trace, trace_as_json(options.model.model, measurement, preparation, modules));
}

}  // namespace

void add_profile(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("profile", "shows where the time of a compiled model goes, step by step");
  options->model.takes_programs = true;
  options->model.add_to(*command);
  add_inputs(*command, options->inputs, "made by rule");
  add_threads(*command, options->measure.threads);
  add_seconds(*command, options->measure.seconds);
  add_numerics(*command, options->numerics);
  add_precision(*command, options->precision);
  add_device(*command, options->device);
  add_top(*command, options->top);
  add_json(*command, options->json);
  offer_files(command
                  ->add_option("--trace", options->trace,
                               "writes one run to this file, which Perfetto and chrome://tracing open")
                  ->option_text("FILE"),
              {".json"});
  command->footer(examples({"tenon profile builtin:resnet_block --seconds 0.5",
                            "tenon profile builtin:attention --seconds 0.5 --threads 1 --trace trace.json"}));
  command->callback([command, options] {
    refuse_decided(*command, options->model.model, {"--numerics", "--precision", "--device"});
    profile(*options);
  });
}

}  // namespace tenon::cli
