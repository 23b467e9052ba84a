// optimize.cpp — tenon optimize: a smaller, faster model that computes the same.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/load_model.h"
#include "cli/numbers.h"
#include "cli/optimization.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/pass_choice.h"
#include "cli/pass_names.h"
#include "cli/peak_memory.h"
#include "cli/saturation.h"
#include "ir/print.h"
#include "optimizer/optimize_to_write.h"

namespace tenon::cli {
namespace {

using optimizer::Counts;
using optimizer::Form;
using optimizer::OptimizedModel;
using optimizer::sum;

struct Options {
  ModelArguments model;
  PassChoice passes;
  std::string output, stats;
  std::optional<int64_t> opset;
  std::optional<double> saturate;
  bool remarks = false;
};

// The form of what is written; that of ONNX also where nothing is.
Form check_output(const Options& options) {
  if (options.output.empty()) {
    if (options.opset)
      throw user_error("--opset is for .onnx files, but none is written\n  hint: name one with -o");
    return Form::Onnx;
  }
  const Form form = optimizer::form_of(options.output);
  if (options.opset && form != Form::Onnx)
    throw user_error("--opset is for .onnx files, but {} is written", options.output);
  check_writable(options.output);
  return form;
}

// Writes the model, and says what is written.
std::string write_model(const OptimizedModel& optimized, const Options& options) {
  const Graph& graph = *optimized.graph;
  const auto size_of = [](const std::string& file) {
    return format_bytes(static_cast<double>(std::filesystem::file_size(file)));
  };
  const optimizer::WrittenModel written = write_optimized(optimized, options.output);
  if (optimized.form == Form::Text) {
    const std::string weights = large_literals(graph).empty()
                                    ? ""
                                    : fmt::format(", with {} of weights in {}.weights",
                                                  size_of(options.output + ".weights"), options.output);
    return fmt::format("wrote {}: {}{}\n", options.output, size_of(options.output), weights);
  }
  if (written.is_unchanged)
    return fmt::format("wrote {}: {}, unchanged\n", options.output, size_of(options.output));
  const auto& [opset, newest_op, data_bytes, nodes] = written.onnx;
  const std::optional<int64_t> before = optimized.source_opset;
  std::string text = fmt::format("wrote {}: {}", options.output, size_of(options.output));
  if (data_bytes > 0)
    text += fmt::format(", with {} of weights in {}.data", format_bytes(static_cast<double>(data_bytes)),
                        options.output);
  text += fmt::format(", opset {}", opset);
  if (before && opset > *before && !options.opset && !newest_op.empty())
    text += fmt::format(", which {} needs, instead of {}", newest_op, *before);
  else if (before && opset != *before)
    text += fmt::format(" instead of {}", *before);
  return text + "\n";
}

// The composites there are now. A silu as steep as this approximates gelu, and is known by that name.
Counts recognised_in(const Graph& graph) {
  constexpr double kQuickGelu = 1.702;
  Counts counts = {{"attention", 0}, {"layer_norm", 0}, {"rms_norm", 0}, {"gelu", 0}, {"silu", 0}};
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes()) {
      const bool is_quick_gelu =
          node->is("silu") && std::fabs(node->attr("alpha").as<double>() - kQuickGelu) < 1e-3;
      const auto count = counts.find(is_quick_gelu ? "gelu" : std::string(node->op().name));
      if (count != counts.end())
        ++count->second;
    }
  });
  return counts;
}

nlohmann::ordered_json stats_of(const OptimizedModel& optimized) {
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  double milliseconds = 0;
  for (const PassReport& report : optimized.reports) {
    passes.push_back({{"name", report.pass},
                      {"ms", report.milliseconds},
                      {"changes", report.changes},
                      {"nodes", report.nodes}});
    milliseconds += report.milliseconds;
  }
  return {{"nodes_before", optimized.nodes_before},
          {"nodes_after", sum(optimized.ops_after)},
          {"ops_after", optimized.ops_after},
          {"recognised", recognised_in(*optimized.graph)},
          {"applications", optimized.journal.applications().size()},
          {"ms", milliseconds},
          {"peak_rss_mib", peak_memory_mib()},
          {"passes", passes}};
}

// Rules in another order may hide from a later pass what it would have found: what saturation leads to is
// kept where it ends in no more nodes.
void optimize_and_write(const Options& options) {
  const Form form = check_output(options);
  check_json(options.stats);
  PipelineOptions passes = options.passes.portable(pass_names());
  const std::optional<optimizer::Source> source = source_of(options.model);
  Progress progress("optimising", 0);
  show_progress(passes, progress);
  const auto optimise = [&](const PipelineOptions& with) {
    return optimize_to_write(load_model(options.model), source,
                             {.form = form,
                              .passes = with,
                              .numerics = parse_numerics_budget(options.passes.numerics),
                              .opset = options.opset});
  };
  OptimizedModel best = optimise(passes);
  if (options.saturate) {
    passes.pipeline = pipeline_for(options.saturate);
    if (!passes.only.empty())
      passes.only.insert("saturate");
    if (OptimizedModel saturated = optimise(passes); sum(saturated.ops_after) <= sum(best.ops_after))
      best = std::move(saturated);
  }
  progress.clear();
  const std::string written = options.output.empty() ? "" : write_model(best, options);
  std::set<Remark> remarks = best.journal.remarks();
  remarks.merge(best.reverted);
  const std::string text = pass_table(best.reports) +
                           fmt::format("{} nodes became {}\n", best.nodes_before, sum(best.ops_after)) +
                           written + (options.remarks ? remark_list(remarks) : "");
  write_results(text, options.stats, stats_of(best));
}

}  // namespace

void add_optimize(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("optimize", "makes a model smaller and faster");
  options->model.add_to(*command);
  offer_files(
      command
          ->add_option("-o,--output", options->output, "writes the optimised model here, as .onnx or .tenon")
          ->option_text("FILE"),
      {".onnx", ".tenon"});
  add_opset(*command, options->opset);
  options->passes.add_to(*command, pass_names());
  add_saturate(*command, options->saturate);
  offer_files(command
                  ->add_option("--stats", options->stats,
                               "writes counts and times to this file; -: to stdout, and nothing else")
                  ->option_text("FILE"),
              {".json"});
  command->add_flag("--remarks", options->remarks, "says what was not done, and why");
  command->footer(examples({"tenon optimize builtin:unoptimized",
                            "tenon optimize builtin:attention -o attention.onnx --stats stats.json",
                            "tenon optimize builtin:unoptimized --passes merge-equal,simplify --remarks"}));
  command->callback([options] { optimize_and_write(*options); });
}

}  // namespace tenon::cli
