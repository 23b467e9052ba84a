// run.cpp — tenon run: runs a model once.
#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "base/error.h"
#include "base/progress.h"
#include "cli/commands.h"
#include "cli/load_model.h"
#include "ir/evaluate.h"
#include "tensor/npy.h"
#include "tensor/wide.h"
#include "verify/sample_inputs.h"

namespace tenon::cli {
namespace {

Data inputs_from(const std::string& file, const Graph& graph) {
  Data inputs;
  const NamedTensors given = read_npz(file);
  for (Value input : graph.inputs()) {
    // By name, or by place as input_0, input_1, …
    const auto named = [&](const std::string& name) {
      return std::find_if(given.begin(), given.end(), [&](const auto& entry) { return entry.first == name; });
    };
    auto it = named(input.name());
    if (it == given.end())
      it = named(fmt::format("input_{}", input.index()));
    if (it == given.end())
      throw user_error("{}: there is no \"{}\" (nor input_{}) for the input of type {}", file, input.name(),
                       input.index(), input.type());
    inputs.emplace_back(it->second);
  }
  return inputs;
}

Data evaluate_with_progress(const Graph& graph, const Data& inputs, uint64_t seed) {
  Progress progress("running node", graph.node_count());
  return evaluate(graph, inputs,
                  {.seed = seed, .before_node = [&](const Node& node) { progress.step(node.op().name); }});
}

std::string summary(const Datum& datum) {
  if (!std::holds_alternative<Tensor>(datum))
    return to_string(type_of(datum));
  const Tensor& tensor = datum.tensor();
  std::string text = to_string(type_of(datum));
  if (tensor.count() == 0 || kind(tensor.dtype()) == DTypeKind::String ||
      kind(tensor.dtype()) == DTypeKind::Complex)
    return text;
  const std::vector<double> values = widen<double>(tensor);
  const size_t shown = std::min<size_t>(values.size(), 6);
  const auto [least, greatest] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{} = [{:.6g}{}], from {:.6g} to {:.6g}", text,
                     fmt::join(values.begin(), values.begin() + static_cast<int64_t>(shown), ", "),
                     shown < values.size() ? ", …" : "", *least, *greatest);
}

}  // namespace

void add_run(CLI::App& program) {
  struct Options {
    ModelArguments model;
    std::string inputs, outputs, engine = "reference";
    uint64_t seed = 0;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = program.add_subcommand("run", "runs a model once, and shows what comes out");
  options->model.add_to(*command);
  command->add_option("--inputs", options->inputs,
                      "an .npz with the inputs, by name; made by rule when left out");
  command->add_option("--outputs", options->outputs, "writes the outputs to this .npz");
  command->add_option("--engine", options->engine, "what runs it")
      ->check(CLI::IsMember({"reference"}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "the seed of the model's random ops")->capture_default_str();
  command->footer("Example: tenon run model.onnx --inputs in.npz --outputs out.npz");
  command->callback([options] {
    const std::unique_ptr<Graph> graph = load_model(options->model);
    const Data inputs =
        options->inputs.empty() ? sample_inputs(*graph) : inputs_from(options->inputs, *graph);
    const auto start = std::chrono::steady_clock::now();
    const Data outputs = evaluate_with_progress(*graph, inputs, options->seed);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    NamedTensors named;
    for (size_t i = 0; i < outputs.size(); ++i) {
      std::fputs(fmt::format("{}: {}\n", graph->output_names()[i], summary(outputs[i])).c_str(), stdout);
      if (std::holds_alternative<Tensor>(outputs[i]))
        named.emplace_back(graph->output_names()[i], outputs[i].tensor());
      else if (!options->outputs.empty())
        throw unsupported("output {} is no tensor, which an .npz cannot hold", graph->output_names()[i]);
    }
    if (!options->outputs.empty())
      write_npz(options->outputs, named);
    if (::isatty(STDERR_FILENO) != 0)
      std::fputs(fmt::format("ran in {:.3f} s with the reference engine\n", seconds.count()).c_str(), stderr);
  });
}

}  // namespace tenon::cli
