// optimize.cpp — tenon optimize: a smaller, faster model that computes the same.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/count_ops.h"
#include "cli/load_model.h"
#include "cli/numbers.h"
#include "cli/optimization.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/pass_names.h"
#include "cli/peak_memory.h"
#include "cli/saturation.h"
#include "frontends/onnx/import.h"
#include "frontends/onnx/proto.h"
#include "frontends/onnx/write/write.h"
#include "ir/print.h"
#include "passes/pipeline.h"

namespace tenon::cli {
namespace {

struct Options {
  ModelArguments model;
  std::string output, stats, numerics = "default";
  std::vector<std::string> only, disabled;
  std::optional<int64_t> opset;
  std::optional<double> saturate;
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

// That an ONNX file has; nothing for other models.
std::optional<int64_t> opset_of(const std::string& model) {
  if (!model.ends_with(".onnx"))
    return std::nullopt;
  for (const auto& [domain, version] : onnx::read_model(model).proto.opset_import)
    if (domain.empty() || domain == "ai.onnx")
      return version;
  return std::nullopt;
}

// Writes the model, and says what is written.
std::string write_model(const Graph& graph, const Options& options) {
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
  const onnx::Written written = onnx::write_onnx(graph, options.output, {.opset = options.opset});
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

int64_t sum(const Counts& counts) {
  int64_t sum = 0;
  for (const auto& [op, count] : counts)
    sum += count;
  return sum;
}

// Of a model before and after. They are counted as ONNX has them, whether it is written or not, so that an
// ONNX file and what becomes of it are compared; what ONNX cannot say is counted as our graphs have it.
class NodeCounter {
 public:
  NodeCounter(const std::string& model, const Graph& graph) : before_(count_nodes(graph)) {
    if (model.ends_with(".onnx"))
      onnx_before_ = sum(count_ops(onnx::read_model(model).proto.graph));
    else if (const std::optional<Counts> ops = as_onnx(graph, {}))
      onnx_before_ = sum(*ops) + count_dead(graph);
  }

  // How many nodes there were, and which there are now.
  std::pair<int64_t, Counts> before_and_after(const Graph& graph, const Options& options) const {
    if (onnx_before_)
      if (const std::optional<Counts> after = as_onnx(graph, {.opset = options.opset}))
        return {*onnx_before_, *after};
    return {before_, count_ops(graph)};
  }

 private:
  static std::optional<Counts> as_onnx(const Graph& graph, const onnx::WriteOptions& options) {
    try {
      const std::string bytes = onnx::outline_onnx(graph, options);
      return count_ops(onnx::decode_model(std::as_bytes(std::span(bytes))).graph);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  // Nodes that nothing uses: they are not written, but were there.
  static int64_t count_dead(const Graph& graph) {
    const std::unique_ptr<Graph> alive = graph.clone();
    Journal forgotten;
    remove_dead(*alive, forgotten);
    return count_nodes(graph) - count_nodes(*alive);
  }

  int64_t before_;
  std::optional<int64_t> onnx_before_;
};

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

nlohmann::ordered_json stats_of(int64_t before, const Counts& after, const Graph& graph,
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
  return {{"nodes_before", before},
          {"nodes_after", sum(after)},
          {"ops_after", after},
          {"recognised", recognised_in(graph)},
          {"applications", journal.applications().size()},
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

struct Optimised {
  std::unique_ptr<Graph> graph;
  Journal journal;
  std::vector<PassReport> reports;
  int64_t before;  // how many nodes there were
  Counts after;
};

// Rules in another order may hide from a later pass what it would have found: what saturation leads to is
// kept where it ends in no more nodes.
void optimize_and_write(const Options& options) {
  check_output(options);
  check_json(options.stats);
  OptimizeOptions passes = {.only = split_names("--passes", options.only, pass_names()),
                            .disabled = split_names("--disable", options.disabled, pass_names())};
  refuse_both(passes);
  std::unique_ptr<Graph> graph = load_model(options.model);
  const NodeCounter counter(options.model.model, *graph);
  const auto optimise = [&](std::unique_ptr<Graph> each) {
    Journal journal(parse_numerics_budget(options.numerics));
    std::vector<PassReport> reports = optimize_model(*each, journal, passes);
    auto [before, after] = counter.before_and_after(*each, options);
    return Optimised{std::move(each), std::move(journal), std::move(reports), before, std::move(after)};
  };
  std::unique_ptr<Graph> again = options.saturate ? graph->clone() : nullptr;
  Optimised best = optimise(std::move(graph));
  if (again) {
    passes.pipeline = pipeline_for(options.saturate);
    if (!passes.only.empty())
      passes.only.insert("saturate");
    if (Optimised saturated = optimise(std::move(again)); sum(saturated.after) <= sum(best.after))
      best = std::move(saturated);
  }
  const std::string written = options.output.empty() ? "" : write_model(*best.graph, options);
  const std::string text = pass_table(best.reports) +
                           fmt::format("{} nodes became {}\n", best.before, sum(best.after)) + written +
                           (options.remarks ? remark_list(best.journal.remarks()) : "");
  write_results(text, options.stats,
                stats_of(best.before, best.after, *best.graph, best.journal, best.reports));
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
  add_saturate(*command, options->saturate);
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
