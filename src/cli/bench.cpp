// bench.cpp — tenon bench: how long a compiled model takes, and what it needs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/contenders.h"
#include "cli/earlier_results.h"
#include "cli/made_up.h"
#include "cli/milliseconds.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/pass_names.h"
#include "cli/peak_memory.h"

namespace tenon::cli {

using compiler::CompileContext;
using compiler::Needs;

namespace {

struct Options {
  ModelArguments model;
  std::string inputs, numerics = "default", precision = "f32", json, against, compare;
  std::string device = api::default_device();
  double seconds = 2;
  runtime::RunOptions run;
};

constexpr std::string_view kWithout = "without=";

// The passes that --against leaves out: without=NAME,…
std::set<std::string> passes_left_out(const Options& options) {
  if (!options.against.starts_with(kWithout))
    return {};
  return split_names("--against without", {options.against.substr(kWithout.size())},
                     pass_names_of_compiling());
}

void check_against(const Options& options) {
  if (!options.against.empty() && options.against != "reference" && options.against != "unfused" &&
      !options.against.starts_with(kWithout))
    throw user_error("--against: it must be reference, unfused or without=NAME,…, but is {}{}",
                     options.against, did_you_mean(options.against, {"reference", "unfused", "without="}));
}

std::vector<Contender> prepare(Graph& graph, const Options& options) {
  const std::set<std::string> left_out = passes_left_out(options);
  const bool needs_original = options.against == "reference" || !left_out.empty();
  std::unique_ptr<Graph> as_read = needs_original ? graph.clone() : nullptr;
  std::vector<Contender> contenders(1);
  contenders[0].name = "compiled";
  const NumericsBudget numerics = parse_numerics_budget(options.numerics);
  CompileContext how = api::default_context({.numerics = numerics,
                                             .precision = parse_precision(options.precision),
                                             .threads = options.run.threads,
                                             .device = options.device});
  const double optimize_ms = milliseconds_of([&] { optimize_model(graph, numerics); });
  contenders[0].compile(graph, optimize_ms, how);
  if (options.against.empty())
    return contenders;
  Contender& other = contenders.emplace_back();
  other.name = left_out.empty() ? options.against : "without";
  if (!left_out.empty()) {
    std::set<std::string> portable;
    for (const std::string& pass : pass_names())
      if (left_out.contains(pass))
        portable.insert(pass);
    const double without_ms = milliseconds_of([&] { optimize_model(*as_read, numerics, portable); });
    how.disabled = left_out;
    other.compile(*as_read, without_ms, how);
  } else if (as_read) {
    other.graph = std::move(as_read);
  } else {
    how.fuse = false;
    other.compile(graph, optimize_ms, how);
  }
  return contenders;
}

std::string table(const std::vector<Contender>& contenders, ContenderTable::Beside beside) {
  const auto time = [](double milliseconds) { return format_seconds(milliseconds / 1000); };
  ContenderTable table(contenders, std::move(beside));
  table.add("", [](const Contender& each) { return each.name; });
  table.add_times();
  table.add("min", [&](const Contender& each) { return time(each.least()); });
  table.add("runs", [](const Contender& each) { return each.times.size(); });
  if (contenders.size() > 1)
    table.add_speed_ups();
  const auto of_program = [&](const Contender& each, double milliseconds) {
    return each.executor ? time(milliseconds) : std::string("-");
  };
  table.add("compile", [&](const Contender& each) { return of_program(each, each.compile_ms); });
  table.add("  from cache", [&](const Contender& each) { return of_program(each, each.cached_compile_ms); });
  table.add_need("kernels", [](const Needs& needs) { return fmt::format("{}", needs.kernels); });
  if (std::ranges::any_of(contenders,
                          [](const Contender& each) { return each.needs && each.needs->tuned_kernels > 0; }))
    table.add_need("  tuned", [](const Needs& needs) { return fmt::format("{}", needs.tuned_kernels); });
  table.add_need("host steps", [](const Needs& needs) { return fmt::format("{}", needs.host_steps); });
  if (std::ranges::any_of(contenders,
                          [](const Contender& each) { return each.needs && each.needs->placement; })) {
    table.add_need("nodes on the device",
                   [](const Needs& needs) { return fmt::format("{}", needs.placement->on_device); });
    table.add_need("nodes on the host",
                   [](const Needs& needs) { return fmt::format("{}", needs.placement->host_nodes()); });
  }
  table.add_bytes_moved();
  table.add_memory();
  table.add_need("  at least", [](const Needs& needs) {
    return format_bytes(static_cast<double>(needs.arena_lower_bound));
  });
  return table.text();
}

nlohmann::ordered_json times_of(const Contender& contender) {
  nlohmann::ordered_json json = {
      {"median_ms", contender.median()}, {"p95_ms", contender.p95()}, {"min_ms", contender.least()}};
  if (const std::optional<double> median = contender.device_median())
    json["device_median_ms"] = *median;
  return json;
}

void add_needs(nlohmann::ordered_json& json, const Needs& needs) {
  json["kernels"] = needs.kernels;
  json["tuned_kernels"] = needs.tuned_kernels;
  json["arena_bytes"] = needs.arena_bytes;
  json["arena_lower_bound"] = needs.arena_lower_bound;
  json["host_steps"] = needs.host_steps;
  json["bytes_moved"] = needs.bytes_moved;
  if (needs.placement) {
    json["device_nodes"] = needs.placement->on_device;
    json["host_ops"] = needs.placement->on_host;
  }
}

nlohmann::ordered_json as_json(const std::vector<Contender>& contenders, const Options& options) {
  const Contender& first = contenders.front();
  nlohmann::ordered_json json = {{"model", options.model.model}, {"threads", options.run.threads}};
  json.update(times_of(first));
  json["compile_ms"] = first.compile_ms;
  json["cached_compile_ms"] = first.cached_compile_ms;
  json["runs"] = first.times.size();
  json["peak_rss_mib"] = peak_memory_mib();
  add_needs(json, *first.needs);
  if (contenders.size() == 1)
    return json;
  const Contender& other = contenders.back();
  json["against"] = {{"name", options.against}};
  json["against"].update(times_of(other));
  if (other.needs) {
    json["against"]["compile_ms"] = other.compile_ms;
    json["against"]["cached_compile_ms"] = other.cached_compile_ms;
    add_needs(json["against"], *other.needs);
  }
  json["speed_up"] = other.median() / first.median();
  return json;
}

// All numbers, and beside each what it was earlier.
std::string text_of(const std::vector<Contender>& contenders, const Options& options,
                    const nlohmann::ordered_json& json, const std::optional<EarlierResults>& earlier) {
  const auto beside = [&](std::string_view title) -> std::string {
    if (!earlier)
      return "";
    if (title.empty())
      return fmt::format(" {:>14} {:>8}", "before", "ratio");
    const auto found = earlier->compare(title, json);
    return found ? fmt::format(" {:>14} {:>8}", found->before, found->ratio) : "";
  };
  std::string text = table(contenders, beside);
  text += fmt::format("with {}; peak memory {}",
                      format_count(static_cast<uint64_t>(options.run.threads), "thread"),
                      format_bytes(json["peak_rss_mib"].get<double>() * 1024 * 1024));
  if (earlier) {
    const auto found = earlier->compare("peak memory", json);
    text += fmt::format(", before {}, ratio {}", found->before, found->ratio);
  }
  return text + "\n";
}

void bench(const Options& options) {
  check_against(options);
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
  std::vector<Contender> contenders = prepare(*graph, options);
  if (inputs)
    measure(contenders, *inputs, options.seconds, options.run);
  else
    with_made_up_inputs(
        *graph, [&](const Data& samples) { measure(contenders, samples, options.seconds, options.run); });
  const nlohmann::ordered_json json = as_json(contenders, options);
  if (earlier)
    write_note(earlier->mismatch(json));
  write_results(text_of(contenders, options, json, earlier), options.json, json);
}

}  // namespace

void add_bench(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("bench", "measures how long a compiled model takes");
  options->model.add_to(*command);
  add_inputs(*command, options->inputs, "made by rule");
  add_threads(*command, options->run.threads);
  add_seconds(*command, options->seconds);
  add_numerics(*command, options->numerics);
  add_precision(*command, options->precision);
  add_device(*command, options->device);
  CLI::Option* against = command
                             ->add_option("--against", options->against,
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
  command->callback([options] { bench(*options); });
}

}  // namespace tenon::cli
