#include "onnxruntime/compile_graph.h"

#include <fmt/ranges.h>
#include <tenon/tenon.h>

#include "base/error.h"
#include "onnxruntime/read_graph.h"
#include "passes/pipeline.h"
#include "runtime/choose_target.h"

namespace tenon::onnxruntime {
namespace {

void check_passable(std::string_view role, std::string_view name, const Type& type) {
  if (!type.is_tensor())
    throw unsupported("{} \"{}\" is {}: sequences and optionals stay with ONNX Runtime", role, name, type);
}

}  // namespace

void check_graph(const Ort::ConstGraph& graph) {
  const std::unique_ptr<Graph> model = read_graph(graph, Weights::View);
  for (Value input : model->inputs())
    check_passable("input", input.name(), input.type());
  for (size_t i = 0; i < model->outputs().size(); ++i)
    check_passable("output", model->output_names()[i], model->outputs()[i].type());
}

std::unique_ptr<runtime::Executor> compile_graph(const Ort::ConstGraph& graph,
                                                 const compiler::CompileContext& context) {
  const std::unique_ptr<Graph> model = read_graph(graph, Weights::Copy);
  Journal journal(context.numerics);
  optimize(*model, journal);
  return compiler::compile(*model, context);
}

void check_runs_here(const std::vector<compiler::TargetToSave>& targets) {
  std::vector<std::string_view> names;
  for (const auto& [name, context] : targets) {
    const Target& target = context.target;
    if (runtime::find_missing({name, target.architecture, target.cpu, target.features}, this_machine())
            .empty())
      return;
    names.push_back(name);
  }
  throw user_error("the session runs what it writes, but this machine does not run {}",
                   fmt::join(names, ", "));
}

void save_graph(const Ort::ConstGraph& graph, const std::vector<compiler::TargetToSave>& targets,
                const std::filesystem::path& path) {
  const std::unique_ptr<Graph> model = read_graph(graph, Weights::Copy), optimised = model->clone();
  Journal journal(targets.front().context.numerics);
  optimize(*optimised, journal);
  compiler::save_program(
      {.model = *model,
       .optimised = *optimised,
       .made_with = fmt::format("tenon {}, in a session of ONNX Runtime\n", tenon_version())},
      targets, path);
}

}  // namespace tenon::onnxruntime
