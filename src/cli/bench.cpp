// bench.cpp — tenon bench: how long a compiled model takes, and what it needs.
#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/benchmark.h"
#include "cli/commands.h"
#include "cli/made_up.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/pass_names.h"
#include "cli/saved_model.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  BenchmarkOptions bench;
  std::string inputs, json, compare;
};

void bench(Options& options) {
  check_against(options.bench);
  std::optional<EarlierResults> earlier;
  if (!options.compare.empty())
    earlier.emplace(options.compare);
  check_json(options.json);
  refuse_overwriting(options.model, options.json);
  InputFile file(options.inputs);
  const std::unique_ptr<Graph> graph = file.load(options.model);
  const std::optional<Data> inputs = file.inputs_for(*graph);
  file.note_others();
  if (!inputs)
    note_open_sizes(*graph);
  options.bench.model = options.model.model;
  const Benchmark benchmark = bench_graph(*graph, inputs, options.bench);
  if (earlier)
    write_note(earlier->mismatch(benchmark.json));
  write_results(text_of(benchmark, earlier), options.json, benchmark.json);
}

}  // namespace

void add_bench(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("bench", "measures how long a compiled model takes");
  options->model.takes_programs = true;
  options->model.add_to(*command);
  add_inputs(*command, options->inputs, "made by rule");
  add_threads(*command, options->bench.run.threads);
  add_seconds(*command, options->bench.seconds);
  add_numerics(*command, options->bench.numerics);
  add_precision(*command, options->bench.precision);
  add_device(*command, options->bench.device);
  CLI::Option* against = command
                             ->add_option("--against", options->bench.against,
                                          "measures beside it: the reference evaluator, the program with a "
                                          "kernel for each node, or the one made "
                                          "without these passes")
                             ->option_text("reference|unfused|without=NAME,...");
  Offer others = {.words = {"reference", "unfused"}};
  for (const std::string& pass : pass_names_of_compiling())
    others.words.push_back("without=" + pass);
  offer(against, std::move(others));
  CLI::Option* compare = command->add_option("--compare", options->compare,
                                             "shows beside each number what --json wrote earlier");
  offer_files(compare->option_text("FILE"), {".json"});
  add_json(*command, options->json);
  command->footer(
      examples({"tenon bench builtin:attention --threads 1 --seconds 0.5",
                "tenon bench builtin:resnet_block --seconds 0.5 --against unfused --json bench.json",
                "tenon bench builtin:multi_conv_bn --seconds 0.5 --against without=fold-into-weights"}));
  command->callback([command, options] {
    refuse_decided(*command, options->model.model, {"--numerics", "--precision", "--device", "--against"});
    bench(*options);
  });
}

}  // namespace tenon::cli
