// optimize.cpp — tenon optimize: a smaller, faster model that computes the same.
#include <algorithm>
#include <chrono>

#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/load_model.h"
#include "cli/output.h"
#include "frontends/onnx/write/write.h"
#include "ir/print.h"
#include "passes/pipeline.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  std::string output, numerics = "default";
  std::vector<std::string> only, disabled;
  std::optional<int64_t> opset;
  bool remarks = false;
};

// The suffix says in which form.
void check_output(const Options& options) {
  const std::string suffix = std::filesystem::path(options.output).extension();
  if (suffix != ".onnx" && suffix != ".tenon")
    throw user_error("cannot write {}: its name must end in .onnx or .tenon", options.output);
  if (options.opset && suffix != ".onnx")
    throw user_error("--opset is for .onnx files, but {} is written", options.output);
  check_writable(options.output);
}

void write_model(const Graph& graph, const Options& options) {
  if (options.output.ends_with(".onnx"))
    onnx::write_onnx(graph, options.output, {.opset = options.opset});
  else
    save(graph, options.output);
}

// One row for each pass, however often it ran.
std::string table(const std::vector<PassReport>& reports, int64_t nodes_before) {
  std::vector<PassReport> passes;
  for (const PassReport& report : reports) {
    const auto row = std::find_if(passes.begin(), passes.end(),
                                  [&](const PassReport& pass) { return pass.pass == report.pass; });
    if (row == passes.end()) {
      passes.push_back(report);
      continue;
    }
    row->milliseconds += report.milliseconds;
    row->changes += report.changes;
  }
  std::string text = fmt::format("{:<22} {:>8} {:>9}\n", "pass", "changes", "ms");
  for (const PassReport& pass : passes)
    text += fmt::format("{:<22} {:>8} {:>9.2f}\n", pass.pass, pass.changes, pass.milliseconds);
  return text + fmt::format("{} nodes became {}\n", nodes_before,
                            reports.empty() ? nodes_before : reports.back().nodes);
}

void optimize_model(const Options& options) {
  if (!options.output.empty())
    check_output(options);
  const std::unique_ptr<Graph> graph = load_model(options.model);
  Journal journal(parse_numerics_budget(options.numerics));
  const OptimizeOptions passes = {.only = {options.only.begin(), options.only.end()},
                                  .disabled = {options.disabled.begin(), options.disabled.end()}};
  const int64_t nodes_before = count_nodes(*graph);
  const std::vector<PassReport> reports = optimize(*graph, journal, passes);
  if (!options.output.empty())
    write_model(*graph, options);
  write_output(table(reports, nodes_before));
  if (options.remarks)
    for (const Remark& remark : journal.remarks())
      write_output(fmt::format("{}: {}: {}: {}\n", remark.node, remark.pass, remark.rule, remark.reason));
}

}  // namespace

void add_optimize(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("optimize", "makes a model smaller and faster");
  options->model.add_to(*command);
  command->add_option("-o", options->output, "writes the optimised model here, as .onnx or .tenon")
      ->option_text("FILE");
  command
      ->add_option("--opset", options->opset,
                   "the opset of the ONNX file: 13 to 28, by default as old as can be")
      ->option_text("N");
  command->add_option("--numerics", options->numerics, "how exact it must stay: strict, default or fast")
      ->option_text("BUDGET [default]");
  command->add_option("--passes", options->only, "runs these passes alone")
      ->delimiter(',')
      ->option_text("NAME,…");
  command->add_option("--disable", options->disabled, "leaves these passes out")
      ->delimiter(',')
      ->option_text("NAME,…");
  command->add_flag("--remarks", options->remarks, "says what was not done, and why");
  command->callback([options] { optimize_model(*options); });
}

}  // namespace tenon::cli
