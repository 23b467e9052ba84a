// optimize.cpp — tenon optimize: a smaller, faster model that computes the same.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/load_model.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/pass_names.h"
#include "cli/peak_memory.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/proto.h"
#include "frontends/onnx/write/schemas.h"
#include "frontends/onnx/write/write.h"
#include "ir/print.h"
#include "ops/data.h"
#include "passes/pipeline.h"

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

void write_model(const Graph& graph, const Options& options) {
  if (options.output.ends_with(".onnx"))
    onnx::write_onnx(graph, options.output, {.opset = options.opset});
  else
    save(graph, options.output);
}

// One row for each pass, however often it ran.
std::string table(const std::vector<PassReport>& reports) {
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
  std::string text = fmt::format("{:<22} {:>8} {:>9}\n", "pass", "changes", "time");
  for (const PassReport& pass : passes)
    text += fmt::format("{:<22} {:>8} {:>9}\n", pass.pass, pass.changes,
                        format_seconds(pass.milliseconds / 1000));
  return text;
}

using Counts = std::map<std::string, int64_t>;

// The nodes of a graph by op, those of nested graphs included, constants not.
void add_ops(const onnx::GraphProto& graph, Counts& counts) {
  for (const onnx::NodeProto& node : graph.node) {
    if (node.op_type != "Constant")
      ++counts[std::string(node.op_type)];
    for (const onnx::AttributeProto& attribute : node.attribute)
      for (const onnx::GraphProto& nested : attribute.graphs)
        add_ops(nested, counts);
  }
}

void add_ops(const Graph& graph, Counts& counts) {
  for_each_graph(graph, [&](const Graph& each) {
    for (const Node* node : each.nodes())
      if (literal_of(*node) == nullptr)
        ++counts[std::string(node->op().name)];
  });
}

// Those of an ONNX file where one is written, so that two files are compared, or two graphs. Only what was no
// ONNX before is counted as a graph then.
Counts ops_of(const std::string& file, const Graph& graph, const Options& options) {
  Counts counts;
  if (file.ends_with(".onnx") && options.output.ends_with(".onnx"))
    add_ops(onnx::read_model(file).proto.graph, counts);
  else
    add_ops(graph, counts);
  return counts;
}

int64_t sum(const Counts& counts) {
  int64_t sum = 0;
  for (const auto& [op, count] : counts)
    sum += count;
  return sum;
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

nlohmann::ordered_json stats_of(const Counts& before, const Counts& after, const Graph& graph,
                                const Journal& journal, const std::vector<PassReport>& reports) {
  nlohmann::ordered_json passes = nlohmann::ordered_json::array();
  double milliseconds = 0;
  for (const PassReport& report : reports) {
    passes.push_back({{"name", report.pass},
                      {"ms", report.milliseconds},
                      {"changes", report.changes},
                      {"nodes", report.nodes}});
    milliseconds += report.milliseconds;
  }
  return {{"nodes_before", sum(before)},
          {"nodes_after", sum(after)},
          {"ops_after", after},
          {"recognised", recognised_in(graph)},
          {"applications", journal.applications().size()},
          {"ms", milliseconds},
          {"peak_rss_mib", peak_memory_mib()},
          {"passes", passes}};
}

void optimize_and_write(const Options& options) {
  check_output(options);
  check_json(options.stats);
  const std::unique_ptr<Graph> graph = load_model(options.model);
  Journal journal(parse_numerics_budget(options.numerics));
  const OptimizeOptions passes = {.only = split_names("--passes", options.only),
                                  .disabled = split_names("--disable", options.disabled)};
  const Counts before = ops_of(options.model.model, *graph, options);
  const std::vector<PassReport> reports = optimize_model(*graph, journal, passes);
  if (!options.output.empty())
    write_model(*graph, options);
  const Counts after = ops_of(options.output, *graph, options);
  std::string text = table(reports) + fmt::format("{} nodes became {}\n", sum(before), sum(after));
  if (options.remarks)
    for (const Remark& remark : journal.remarks())
      text += fmt::format("{}: {}: {}: {}\n", remark.node, remark.pass, remark.rule, remark.reason);
  write_results(text, options.stats, stats_of(before, after, *graph, journal, reports));
}

}  // namespace

void add_optimize(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("optimize", "makes a model smaller and faster");
  options->model.add_to(*command);
  offer_files(
      command->add_option("-o", options->output, "writes the optimised model here, as .onnx or .tenon")
          ->option_text("FILE"),
      {".onnx", ".tenon"});
  command
      ->add_option("--opset", options->opset,
                   fmt::format("the opset of the ONNX file: {} to {}, by default the oldest that all its "
                               "nodes can be written in",
                               onnx::kOldestWritten, onnx::kNewestOpset))
      ->option_text("N");
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
