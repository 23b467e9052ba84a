// bench.cpp — tenon bench: how long a compiled model takes, and what it needs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/progress.h"
#include "base/scratch_folder.h"
#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/compile_model.h"
#include "cli/made_up.h"
#include "cli/numbers.h"
#include "cli/output.h"
#include "cli/peak_memory.h"
#include "cli/run_compiled.h"
#include "compiler/describe.h"
#include "ir/evaluate.h"

namespace tenon::cli {
namespace {

constexpr int64_t kLeastRuns = 5;

struct Options {
  ModelArguments model;
  std::string inputs, numerics = "default", precision = "f32", json, against;
  double seconds = 2;
  tenon::RunOptions run;
};

template <class Work>
double milliseconds_of(Work&& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// What this part of sorted times does not exceed.
double quantile(const std::vector<double>& times, double part) {
  return times[static_cast<size_t>(std::ceil(part * static_cast<double>(times.size()))) - 1];
}

// One way to run the model, and what was found out about it.
struct Contender {
  std::string name;
  std::unique_ptr<Program> program;  // null: the reference evaluator runs `graph`
  std::unique_ptr<Graph> graph;
  double compile_ms = 0, cached_compile_ms = 0;
  std::optional<Needs> needs = {};   // of a program
  std::vector<double> times = {};    // in milliseconds, sorted in the end
  std::vector<Tensor> outputs = {};  // memory for them, where their sizes are fixed

  void compile(const Graph& optimised, double optimize_ms, CompileOptions how) {
    const ScratchFolder folder;
    how.cache = codegen::ObjectCache(folder.path());
    const auto timed = [&] { return milliseconds_of([&] { program = compile_model(optimised, how); }); };
    compile_ms = optimize_ms + timed();
    program.reset();  // so that it is in memory once
    cached_compile_ms = optimize_ms + timed();
    if (program->has_fixed_sizes())
      for (const Type& type : program->graph().output_types())
        outputs.emplace_back(type.as_tensor().dtype, *type.as_tensor().shape.extents());
  }

  void run(const Data& inputs, const tenon::RunOptions& options) {
    if (!program)
      evaluate(*graph, inputs, {.seed = options.seed});
    else if (program->has_fixed_sizes())
      run_into(inputs, options);
    else
      program->run(inputs, options);
  }

  // As a caller does who has the memory.
  void run_into(const Data& inputs, const tenon::RunOptions& options) {
    std::vector<const void*> from;
    std::vector<void*> to;
    for (const Datum& input : inputs)
      from.push_back(input.tensor().bytes().data());
    for (Tensor& output : outputs)
      to.push_back(output.mutable_bytes().data());
    program->run_into(from, to, options);
  }

  double median() const { return quantile(times, 0.5); }
  double p95() const { return quantile(times, 0.95); }
  double least() const { return times.front(); }
};

std::vector<Contender> prepare(Graph& graph, const Options& options) {
  std::unique_ptr<Graph> as_read = options.against == "reference" ? graph.clone() : nullptr;
  std::vector<Contender> contenders(1);
  contenders[0].name = "compiled";
  const NumericsBudget numerics = parse_numerics_budget(options.numerics);
  const Precision precision = parse_precision(options.precision);
  const double optimize_ms = milliseconds_of([&] { optimize_model(graph, numerics); });
  contenders[0].compile(graph, optimize_ms, {.numerics = numerics, .precision = precision});
  if (options.against.empty())
    return contenders;
  contenders.emplace_back();
  contenders[1].name = options.against;
  if (as_read)
    contenders[1].graph = std::move(as_read);
  else
    contenders[1].compile(graph, optimize_ms, {.fuse = false, .numerics = numerics, .precision = precision});
  return contenders;
}

// Runs all once after another, so that what slows the machine down for a while slows all of them.
void measure(std::vector<Contender>& contenders, const Data& inputs, const Options& options) {
  const auto run = [&](Contender& contender) {
    return milliseconds_of([&] { run_compiled([&] { contender.run(inputs, options.run); }); });
  };
  const double milliseconds = 1000 * options.seconds;
  double turn = 0;  // of all, once they are warm
  for (Contender& contender : contenders) {
    std::vector<double> times;
    for (double spent = 0; times.empty() || spent < milliseconds / 10; spent += times.back())
      times.push_back(run(contender));
    std::sort(times.begin(), times.end());
    turn += quantile(times, 0.5);
  }
  const auto turns = std::max(kLeastRuns, static_cast<int64_t>(std::ceil(milliseconds / turn)));
  Progress progress("measuring run", turns);
  for (int64_t i = 0; i < turns; ++i) {
    progress.step("");
    for (Contender& contender : contenders)
      contender.times.push_back(run(contender));
  }
  for (Contender& contender : contenders) {
    std::sort(contender.times.begin(), contender.times.end());
    if (contender.program)
      contender.needs = needs_of(*contender.program, sizes_of(contender.program->graph(), inputs));
  }
}

std::string with_unit(int64_t bytes) {
  if (bytes < 10'000)
    return fmt::format("{} B", bytes);
  if (bytes < 10'000 << 10)
    return fmt::format("{:.1f} KiB", std::ldexp(static_cast<double>(bytes), -10));
  return fmt::format("{:.1f} MiB", std::ldexp(static_cast<double>(bytes), -20));
}

// A column for each contender.
class Table {
 public:
  explicit Table(const std::vector<Contender>& contenders) : contenders_(contenders) {}

  template <class Cell>
  void add(std::string_view title, Cell&& cell) {
    text_ += fmt::format("{:<20}", title);
    for (const Contender& contender : contenders_)
      text_ += fmt::format(" {:>14}", cell(contender));
    text_ += "\n";
  }
  // What only programs have.
  template <class Cell>
  void add_need(std::string_view title, Cell&& cell) {
    add(title, [&](const Contender& each) { return each.needs ? cell(*each.needs) : std::string("-"); });
  }

  const std::string& text() const { return text_; }

 private:
  const std::vector<Contender>& contenders_;
  std::string text_;
};

std::string table(const std::vector<Contender>& contenders) {
  const auto ms = [](double milliseconds) { return fmt::format("{:.4f} ms", milliseconds); };
  Table table(contenders);
  table.add("", [](const Contender& each) { return each.name; });
  table.add("median", [&](const Contender& each) { return ms(each.median()); });
  table.add("p95", [&](const Contender& each) { return ms(each.p95()); });
  table.add("min", [&](const Contender& each) { return ms(each.least()); });
  table.add("runs", [](const Contender& each) { return each.times.size(); });
  if (contenders.size() > 1)
    table.add("speed-up", [&](const Contender& each) {
      return fmt::format("{:.2f}x", contenders.back().median() / each.median());
    });
  const auto of_program = [&](const Contender& each, double milliseconds) {
    return each.program ? ms(milliseconds) : std::string("-");
  };
  table.add("compile", [&](const Contender& each) { return of_program(each, each.compile_ms); });
  table.add("  from cache", [&](const Contender& each) { return of_program(each, each.cached_compile_ms); });
  table.add_need("kernels", [](const Needs& needs) { return fmt::format("{}", needs.kernels); });
  table.add_need("host steps", [](const Needs& needs) { return fmt::format("{}", needs.host_steps); });
  table.add_need("bytes moved", [](const Needs& needs) { return with_unit(needs.bytes_moved); });
  table.add_need("intermediate memory", [](const Needs& needs) { return with_unit(needs.arena_bytes); });
  table.add_need("  at least", [](const Needs& needs) { return with_unit(needs.arena_lower_bound); });
  return table.text();
}

nlohmann::ordered_json times_of(const Contender& contender) {
  return {{"median_ms", contender.median()}, {"p95_ms", contender.p95()}, {"min_ms", contender.least()}};
}

void add_needs(nlohmann::ordered_json& json, const Needs& needs) {
  json["kernels"] = needs.kernels;
  json["arena_bytes"] = needs.arena_bytes;
  json["arena_lower_bound"] = needs.arena_lower_bound;
  json["host_steps"] = needs.host_steps;
  json["bytes_moved"] = needs.bytes_moved;
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
  json["against"] = {{"name", other.name}};
  json["against"].update(times_of(other));
  if (other.needs) {
    json["against"]["compile_ms"] = other.compile_ms;
    json["against"]["cached_compile_ms"] = other.cached_compile_ms;
    add_needs(json["against"], *other.needs);
  }
  json["speed_up"] = other.median() / first.median();
  return json;
}

void bench(const Options& options) {
  if (!options.json.empty()) {
    check_writable(options.json);
    refuse_overwriting(options.model, options.json);
  }
  InputFile file(options.inputs);
  const std::unique_ptr<Graph> graph = file.load(options.model);
  const std::optional<Data> inputs = file.inputs_for(*graph);
  file.note_others();
  std::vector<Contender> contenders = prepare(*graph, options);
  if (inputs)
    measure(contenders, *inputs, options);
  else
    with_made_up_inputs(*graph, [&](const Data& samples) { measure(contenders, samples, options); });
  write_output(table(contenders));
  write_output(fmt::format("with {} thread{}; peak memory {:.1f} MiB\n", options.run.threads,
                           options.run.threads == 1 ? "" : "s", peak_memory_mib()));
  if (!options.json.empty())
    write_json(options.json, as_json(contenders, options));
}

}  // namespace

void add_bench(CLI::App& program) {
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("bench", "measures how long a compiled model takes");
  options->model.add_to(*command);
  command->add_option(
      "--inputs", options->inputs,
      "an .npz with the inputs, by name or as input_0, input_1, …; made by rule when left out");
  add_threads(*command, options->run.threads);
  add_seconds(*command, options->seconds);
  command->add_option("--numerics", options->numerics, "how exact it must stay: strict, default or fast")
      ->option_text("BUDGET [default]");
  add_precision(*command, options->precision);
  command
      ->add_option("--against", options->against,
                   "measures beside it: the reference evaluator, or the program with a kernel for each node")
      ->check(CLI::IsMember({"reference", "unfused"}).description(""))
      ->option_text("reference|unfused");
  command->add_option("--json", options->json, "writes the results to this file")->option_text("FILE");
  command->footer("Example: tenon bench model.onnx --threads 2 --against unfused");
  command->callback([options] { bench(*options); });
}

}  // namespace tenon::cli
