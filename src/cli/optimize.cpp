// optimize.cpp — tenon optimize: a smaller, faster model that computes the same.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/mapped_file.h"
#include "base/units.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/numbers.h"
#include "cli/optimization.h"
#include "cli/optimized_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/pass_names.h"
#include "cli/peak_memory.h"
#include "frontends/onnx/wire.h"
#include "frontends/onnx/write/write.h"
#include "ir/print.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  std::string output, stats, numerics = "default";
  std::vector<std::string> only, disabled;
  std::optional<int64_t> opset;
  bool remarks = false;
};

// The suffix says in which form.
void check_output(const Options& options) {
  if (options.output.empty()) {
    if (options.opset)
      throw user_error("--opset is for .onnx files, but none is written\n  hint: name one with -o");
    return;
  }
  const std::string suffix = std::filesystem::path(options.output).extension();
  if (suffix != ".onnx" && suffix != ".tenon")
    throw user_error("cannot write {}: its name must end in .onnx or .tenon", options.output);
  if (options.opset && suffix != ".onnx")
    throw user_error("--opset is for .onnx files, but {} is written", options.output);
  check_writable(options.output);
}

// Writes the model, and says what is written.
std::string write_model(const OptimizedModel& optimized, const Options& options) {
  const Graph& graph = *optimized.graph;
  const auto size_of = [](const std::string& file) {
    return format_bytes(static_cast<double>(std::filesystem::file_size(file)));
  };
  if (!options.output.ends_with(".onnx")) {
    save(graph, options.output);
    const std::string weights = large_literals(graph).empty()
                                    ? ""
                                    : fmt::format(", with {} of weights in {}.weights",
                                                  size_of(options.output + ".weights"), options.output);
    return fmt::format("wrote {}: {}{}\n", options.output, size_of(options.output), weights);
  }
  const std::optional<int64_t> before = opset_of(options.model.model);  // which may be what is written over
  if (optimized.is_as_it_came) {
    write_file(options.output, onnx::as_text(MappedFile::open(options.model.model)->bytes()));
    return fmt::format("wrote {}: {}, as it came\n", options.output, size_of(options.output));
  }
  const onnx::Written written = onnx::write_onnx(graph, options.output, optimized.write);
  std::string text = fmt::format("wrote {}: {}", options.output, size_of(options.output));
  if (written.data_bytes > 0)
    text += fmt::format(", with {} of weights in {}.data",
                        format_bytes(static_cast<double>(written.data_bytes)), options.output);
  text += fmt::format(", opset {}", written.opset);
  if (before && written.opset > *before && !options.opset && !written.newest_op.empty())
    text += fmt::format(", which {} needs, instead of {}", written.newest_op, *before);
  else if (before && written.opset != *before)
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

// A pass that is both asked for and left out would never run, which nobody wants.
void refuse_both(const OptimizeOptions& passes) {
  for (const std::string& name : passes.only)
    if (passes.disabled.contains(name))
      throw user_error("--passes and --disable both name {}", name);
}

void optimize_and_write(const Options& options) {
  check_output(options);
  check_json(options.stats);
  const OptimizeOptions passes = {.only = split_names("--passes", options.only, pass_names()),
                                  .disabled = split_names("--disable", options.disabled, pass_names())};
  refuse_both(passes);
  OptimizedModel optimized =
      optimize_to_write({.model = options.model,
                         .passes = passes,
                         .numerics = parse_numerics_budget(options.numerics),
                         .opset = options.opset,
                         .is_held_to_source = options.output.empty() || options.output.ends_with(".onnx")});
  const std::string written = options.output.empty() ? "" : write_model(optimized, options);
  std::set<Remark> remarks = optimized.journal.remarks();
  remarks.merge(optimized.taken_back);
  const std::string text =
      pass_table(optimized.reports) +
      fmt::format("{} nodes became {}\n", optimized.nodes_before, sum(optimized.ops_after)) + written +
      (options.remarks ? remark_list(remarks) : "");
  write_results(text, options.stats, stats_of(optimized));
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
  add_numerics(*command, options->numerics);
  const std::vector<std::string> passes = pass_names();
  offer(command->add_option("--passes", options->only, "runs these passes alone")->option_text("NAME,..."),
        {.words = passes, .is_list = true});
  offer(
      command->add_option("--disable", options->disabled, "leaves these passes out")->option_text("NAME,..."),
      {.words = passes, .is_list = true});
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
