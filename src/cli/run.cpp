// run.cpp — tenon run: runs a model once.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/progress.h"
#include "base/write_file.h"
#include "cli/arrays.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/summary.h"
#include "ir/evaluate.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {
namespace {

// That the outputs can be written is known before the model runs.
void check_outputs(const std::string& file, const Graph& graph) {
  check_writable(file);
  if (graph.outputs().empty())
    throw user_error("cannot write {}: the model has no outputs", file);
  const std::vector<Value> outputs = graph.outputs();
  std::map<std::string, Value> named;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = graph.output_names()[i];
    if (named.emplace(name, outputs[i]).first->second != outputs[i])
      throw unsupported("two outputs have the name \"{}\", which an .npz cannot hold", name);
    if (!outputs[i].type().is_tensor())
      throw unsupported("the output \"{}\" is no tensor, which an .npz cannot hold", name);
  }
}

Data evaluate_with_progress(const Graph& graph, const Data& inputs, uint64_t seed) {
  Progress progress("running node", graph.node_count());
  return evaluate(graph, inputs,
                  {.seed = seed, .before_node = [&](const Node& node) { progress.step(node.op().name); }});
}

// The same on inputs made by rule, which not every model takes: token ids must be small, say.
Data evaluate_on_samples(const Graph& graph, uint64_t seed) {
  try {
    return evaluate_with_progress(graph, sample_inputs(graph), seed);
  } catch (const UnsupportedError&) {
    throw;
  } catch (const UserError& error) {
    const std::string dims = dims_to_bind(graph);
    throw user_error("{}\n  hint: the inputs were made up; give your own with --inputs{}", error.what(),
                     dims.empty() ? "" : ", or sizes with " + dims);
  }
}

void write_outputs(const std::string& file, const Graph& graph, const Data& outputs) {
  std::map<std::string, Tensor> named;  // an output that is listed twice is written once
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace(graph.output_names()[i], outputs[i].tensor());
  write_npz(file, {named.begin(), named.end()});
}

struct RunOptions {
  ModelArguments model;
  std::string inputs, outputs, engine = "reference";
  uint64_t seed = 0;
};

void run(const RunOptions& options) {
  InputFile file(options.inputs);
  const std::unique_ptr<Graph> graph = file.load(options.model);
  if (!options.outputs.empty()) {
    refuse_overwriting(options.model, options.outputs);
    check_outputs(options.outputs, *graph);
  }
  const std::optional<Data> inputs = file.inputs_for(*graph);
  file.note_others();
  const auto start = std::chrono::steady_clock::now();
  const Data outputs = inputs ? evaluate_with_progress(*graph, *inputs, options.seed)
                              : evaluate_on_samples(*graph, options.seed);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  if (!options.outputs.empty())
    write_outputs(options.outputs, *graph, outputs);
  for (size_t i = 0; i < outputs.size(); ++i)
    write_output(fmt::format("{}: {}\n", graph->output_names()[i], summary(outputs[i])));
  if (::isatty(STDERR_FILENO) != 0)
    std::fputs(fmt::format("ran in {:.3f} s with the reference engine\n", seconds.count()).c_str(), stderr);
}

}  // namespace

void add_run(CLI::App& program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = program.add_subcommand("run", "runs a model once, and shows what comes out");
  options->model.add_to(*command);
  command->add_option(
      "--inputs", options->inputs,
      "an .npz with the inputs, by name or as input_0, input_1, …; made by rule when left out");
  command->add_option("--outputs", options->outputs, "writes the outputs to this .npz");
  command->add_option("--engine", options->engine, "what runs it")
      ->check(CLI::IsMember({"reference"}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "the seed of the model's random ops")->capture_default_str();
  command->footer(
      "An input of an ONNX model that has a value in the model keeps it unless --inputs holds another.\n"
      "Inputs made by rule: element i is sin(0.37 i) + 0.1 for floats, 7919 i mod 1000 for integers,\n"
      "true for booleans; a symbolic dimension is 1 unless --dim says otherwise.\n"
      "Example: tenon run model.onnx --inputs in.npz --outputs out.npz");
  command->callback([options] { run(*options); });
}

}  // namespace tenon::cli
