// bisect.cpp — tenon bisect: the one rewrite that changes what a model computes.
#include "verify/bisect.h"

#include "cli/commands.h"
#include "cli/load_model.h"
#include "cli/output.h"
#include "ir/print.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  BisectOptions bisect;
  std::string numerics = "default", output = "bisect.tenon";
};

void run(Options& options) {
  const std::unique_ptr<Graph> graph = load_model(options.model);
  options.bisect.verify.numerics = parse_numerics_budget(options.numerics);
  const std::optional<Culprit> culprit = bisect(*graph, options.bisect);
  if (!culprit) {
    write_output("no rewrite changes what the model computes\n");
    return;
  }
  const auto& [number, pass, rule, nodes] = culprit->application;
  write_output(fmt::format("rewrite {}: rule {} of pass {}\n  nodes: {}\n  {}\n", number, rule, pass,
                           fmt::join(nodes, ", "), culprit->numbers.detail));
  if (culprit->model) {
    save(*culprit->model, options.output);
    write_output(fmt::format("  {} shows it\n", options.output));
  }
  throw Refused();
}

}  // namespace

void add_bisect(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      program.add_subcommand("bisect", "finds the one rewrite that changes what a model computes");
  options->model.add_to(*command);
  command->add_option("-o", options->output, "where a small model that shows it is written")
      ->option_text("FILE [bisect.tenon]");
  command->add_option("--tolerance", options->bisect.verify.tolerance, "max |difference| over max |expected|")
      ->capture_default_str();
  command->add_option("--numerics", options->numerics, "how exact it must stay: strict, default or fast")
      ->option_text("BUDGET [default]");
  command->footer("Exit status 1 when there is such a rewrite.\nExample: tenon bisect model.onnx");
  command->callback([options] { run(*options); });
}

}  // namespace tenon::cli
