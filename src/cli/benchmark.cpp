#include "cli/benchmark.h"

#include <algorithm>

#include "base/units.h"
#include "cli/made_up.h"
#include "cli/milliseconds.h"
#include "cli/options.h"
#include "cli/pass_names.h"
#include "cli/peak_memory.h"
#include "cli/saved_model.h"

namespace tenon::cli {

using compiler::CompileContext;
using compiler::Needs;

namespace {

constexpr std::string_view kWithout = "without=";

// The passes that --against leaves out: without=NAME,…
std::set<std::string> passes_left_out(const BenchmarkOptions& options) {
  if (!options.against.starts_with(kWithout))
    return {};
  return split_names("--against without", {options.against.substr(kWithout.size())},
                     pass_names_of_compiling());
}

}  // namespace

void check_against(const BenchmarkOptions& options) {
  if (!options.against.empty() && options.against != "reference" && options.against != "unfused" &&
      !options.against.starts_with(kWithout))
    throw user_error("--against: it must be reference, unfused or without=NAME,…, but is {}{}",
                     options.against, did_you_mean(options.against, {"reference", "unfused", "without="}));
}

namespace {

std::vector<Contender> prepare(Graph& graph, const BenchmarkOptions& options) {
  if (is_saved_program(options.model)) {
    std::vector<Contender> opened(1);
    opened[0].name = "saved";
    opened[0].open(options.model);
    return opened;
  }
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
  const auto optimise = [&](Graph& each, const std::set<std::string>& disabled = {}) {
    Journal journal(numerics);
    optimize_model(each, journal, {.pipeline = options.pipeline, .disabled = disabled});
  };
  const double optimize_ms = milliseconds_of([&] { optimise(graph); });
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
    const double without_ms = milliseconds_of([&] { optimise(*as_read, portable); });
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
  const bool is_saved = contenders.front().name == "saved";
  table.add(is_saved ? "open" : "compile",
            [&](const Contender& each) { return of_program(each, each.compile_ms); });
  if (!is_saved)
    table.add("  from cache",
              [&](const Contender& each) { return of_program(each, each.cached_compile_ms); });
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

nlohmann::ordered_json as_json(const std::vector<Contender>& contenders, const BenchmarkOptions& options) {
  const Contender& first = contenders.front();
  nlohmann::ordered_json json = {{"model", options.model}, {"threads", options.run.threads}};
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

}  // namespace

Benchmark bench_graph(Graph& graph, const std::optional<Data>& inputs, const BenchmarkOptions& options) {
  Benchmark benchmark{.contenders = prepare(graph, options), .json = {}};
  const auto run = [&](const Data& data) {
    measure(benchmark.contenders, data, options.seconds, options.run);
  };
  if (inputs)
    run(*inputs);
  else
    with_made_up_inputs(graph, run);
  benchmark.json = as_json(benchmark.contenders, options);
  return benchmark;
}

std::string text_of(const Benchmark& benchmark, const std::optional<EarlierResults>& earlier) {
  const nlohmann::ordered_json& json = benchmark.json;
  const auto beside = [&](std::string_view title) -> std::string {
    if (!earlier)
      return "";
    if (title.empty())
      return fmt::format(" {:>14} {:>8}", "before", "ratio");
    const auto found = earlier->compare(title, json);
    return found ? fmt::format(" {:>14} {:>8}", found->before, found->ratio) : "";
  };
  std::string text = table(benchmark.contenders, beside);
  text += fmt::format("with {}; peak memory {}", format_count(json["threads"].get<uint64_t>(), "thread"),
                      format_bytes(json["peak_rss_mib"].get<double>() * 1024 * 1024));
  if (earlier) {
    const auto found = earlier->compare("peak memory", json);
    text += fmt::format(", before {}, ratio {}", found->before, found->ratio);
  }
  return text + "\n";
}

}  // namespace tenon::cli
