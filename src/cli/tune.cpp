// tune.cpp — tenon tune: measures other ways to compute the contractions of a model, and remembers the best.
#include "tune/tune.h"

#include <nlohmann/json.hpp>

#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/made_up.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/run_compiled.h"
#include "report/modules.h"
#include "tune/print_tuning.h"

namespace tenon::cli {

using compiler::tuned_file;
using compiler::TunedChoices;

namespace {

struct Options {
  ModelArguments model;
  std::string inputs, numerics = "default", precision = "f32", json;
  std::string device = api::default_device();
  int threads = 1;
  double seconds = 60;
};

std::filesystem::path file_for_results() {
  const std::optional<std::filesystem::path> file = tuned_file(codegen::default_cache());
  if (!file)
    throw user_error(
        "the cache is switched off, so that results could not be kept\n  hint: TENON_CACHE names its folder");
  std::error_code ignored;  // check_writable says why where it cannot be
  std::filesystem::create_directories(file->parent_path(), ignored);
  check_writable(*file);
  return *file;
}

// What went wrong, if anything did, for after the results are shown: they took long to measure.
std::exception_ptr keep(const TuneResult& result, const std::filesystem::path& file) {
  try {
    if (const TunedChoices adopted = result.adopted(); !adopted.empty())
      add_tuned(file, adopted);
    return nullptr;
  } catch (const UserError&) {
    return std::current_exception();
  }
}

// Schedules for a GPU have nothing to choose from.
void refuse_gpu(const compiler::CompileContext& context, const std::string& device) {
  if (const std::optional<Gpu>& gpu = context.target.gpu)
    throw user_error(
        "{} ({}): nothing can be tuned for a GPU yet\n  hint: --device cpu tunes for the processor", device,
        gpu->name);
}

void tune(const Options& options) {
  const NumericsBudget numerics = parse_numerics_budget(options.numerics);
  const compiler::CompileContext context =
      api::default_context({.numerics = numerics,
                            .precision = parse_precision(options.precision),
                            .threads = options.threads,
                            .device = options.device});
  refuse_gpu(context, options.device);
  const std::filesystem::path results = file_for_results();
  check_json(options.json);
  refuse_overwriting(options.model, options.json);
  if (!options.json.empty() && is_same_file(options.json, results))
    throw user_error("--json is the file that adopted choices are kept in, {}", options.json);
  InputFile file(options.inputs);
  const std::unique_ptr<Graph> graph = file.load(options.model);
  const std::optional<Data> inputs = file.inputs_for(*graph);
  file.note_others();
  if (const std::string dims = dims_to_bind(*graph); !inputs && !dims.empty())
    throw user_error(
        "what is fastest depends on sizes that the model leaves open\n  hint: bind them with {}, or "
        "give inputs of the sizes that matter with --inputs",
        dims);
  name_nodes(*graph);
  const std::unique_ptr<Graph> as_read = graph->clone();
  optimize_model(*graph, numerics);

  std::optional<Progress> progress(std::in_place, "tuning", 0);
  TuneOptions how{.compile = context, .seconds = options.seconds};
  how.progress = [&](std::string_view what, double left) {
    progress->step(fmt::format("{:.0f} s left, {}", left, what));
  };
  const auto run = [&](const Data& data) {
    return run_compiled([&] { return tenon::tune(*graph, data, how); });
  };
  const TuneResult result = inputs ? run(*inputs) : with_made_up_inputs(*as_read, run);
  progress.reset();
  const std::exception_ptr failure = keep(result, results);
  const std::string text = result.contractions.empty()
                               ? "There is nothing to tune: no contraction can be computed otherwise.\n"
                               : print_tuning(result, options.threads);
  write_results(text, options.json, tuning_as_json(options.model.model, result, options.threads));
  if (failure)
    std::rethrow_exception(failure);
}

}  // namespace

void add_tune(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand(
      "tune", "measures other ways to compute a model's convolutions and products, and remembers the best");
  options->model.add_to(*command);
  add_inputs(*command, options->inputs, "made by rule");
  add_threads(*command, options->threads);
  add_seconds(*command, options->seconds)->description("how long it may take, about");
  add_numerics(*command, options->numerics);
  add_precision(*command, options->precision);
  add_device(*command, options->device);
  add_json(*command, options->json);
  command->footer(examples({"tenon tune builtin:resnet_block --seconds 2",
                            "tenon tune builtin:resnet_block --seconds 2 --threads 1 --json found.json"}));
  command->callback([options] { tune(*options); });
}

}  // namespace tenon::cli
