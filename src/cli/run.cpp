// run.cpp — tenon run: runs a model once.
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/progress.h"
#include "base/write_file.h"
#include "cli/commands.h"
#include "cli/load_model.h"
#include "cli/output.h"
#include "cli/summary.h"
#include "ir/evaluate.h"
#include "tensor/npy.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {
namespace {

std::vector<std::string> names_of(const NamedTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : tensors)
    names.push_back(name);
  return names;
}

std::vector<std::string> input_names(const Graph& graph) {
  std::vector<std::string> names;
  for (Value input : graph.inputs())
    names.push_back(input.name());
  return names;
}

// The arrays of a file, by the names of the inputs, or by their places as input_0, input_1, …
Data inputs_from(const std::string& file, const Graph& graph) {
  const NamedTensors given = read_npz(file);
  const std::vector<std::string> arrays = names_of(given), names = input_names(graph);
  const auto index_of = [](const std::vector<std::string>& list, const std::string& name) {
    return static_cast<size_t>(std::find(list.begin(), list.end(), name) - list.begin());
  };
  std::set<size_t> taken;
  Data inputs;
  for (Value input : graph.inputs()) {
    const std::string place = fmt::format("input_{}", input.index());
    size_t array = index_of(arrays, input.name());
    if (array == arrays.size() && index_of(names, place) == names.size())
      array = index_of(arrays, place);
    if (array == arrays.size())
      throw user_error("{}: there is no \"{}\" (nor {}) for the input of type {}", file, input.name(), place,
                       input.type());
    taken.insert(array);
    inputs.emplace_back(given[array].second);
  }
  if (taken.size() < arrays.size())
    throw user_error("{}: it holds arrays that no input takes\n  arrays: {}\n  inputs: {}", file,
                     fmt::join(arrays, ", "), fmt::join(names, ", "));
  return inputs;
}

// That the outputs can be written is known before the model runs.
void check_outputs(const std::string& file, const Graph& graph) {
  check_writable(file);
  if (graph.outputs().empty())
    throw user_error("cannot write {}: the model has no outputs", file);
  std::set<std::string> names;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const std::string name = graph.output_names()[i];
    if (!names.insert(name).second)
      throw unsupported("two outputs have the name \"{}\", which an .npz cannot hold", name);
    if (!graph.outputs()[i].type().is_tensor())
      throw unsupported("the output \"{}\" is no tensor, which an .npz cannot hold", name);
  }
}

Data evaluate_with_progress(const Graph& graph, const Data& inputs, uint64_t seed) {
  Progress progress("running node", graph.node_count());
  return evaluate(graph, inputs,
                  {.seed = seed, .before_node = [&](const Node& node) { progress.step(node.op().name); }});
}

void write_outputs(const std::string& file, const Graph& graph, const Data& outputs) {
  NamedTensors named;
  for (size_t i = 0; i < outputs.size(); ++i)
    named.emplace_back(graph.output_names()[i], outputs[i].tensor());
  write_npz(file, named);
}

struct RunOptions {
  ModelArguments model;
  std::string inputs, outputs, engine = "reference";
  uint64_t seed = 0;
};

void run(const RunOptions& options) {
  const std::unique_ptr<Graph> graph = load_model(options.model);
  if (!options.outputs.empty())
    check_outputs(options.outputs, *graph);
  const Data inputs = options.inputs.empty() ? sample_inputs(*graph) : inputs_from(options.inputs, *graph);
  const auto start = std::chrono::steady_clock::now();
  const Data outputs = evaluate_with_progress(*graph, inputs, options.seed);
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
  command->footer("Example: tenon run model.onnx --inputs in.npz --outputs out.npz");
  command->callback([options] { run(*options); });
}

}  // namespace tenon::cli
