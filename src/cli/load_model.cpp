#include "cli/load_model.h"

#include <filesystem>

#include "base/error.h"
#include "cli/bindings.h"
#include "cli/options.h"
#include "cli/saved_model.h"
#include "frontends/builtin/builtin.h"
#include "frontends/read_model.h"

namespace tenon::cli {

void ModelArguments::add_to(CLI::App& command) {
  CLI::Option* option = command.add_option(
      "MODEL", model,
      fmt::format("a file (.onnx, .pt2, .gguf, .tenon{}) or builtin:NAME", takes_programs ? ", .tnp" : ""));
  Offer offered = {.takes_files = true, .suffixes = {".onnx", ".pt2", ".gguf", ".tenon"}};
  if (takes_programs)
    offered.suffixes.push_back(".tnp");
  for (const builtin::Model& each : builtin::all_models())
    offered.words.push_back(fmt::format("builtin:{}", each.name));
  offer(option->required(), std::move(offered));
  command.add_option("--dim", dims, "binds a symbolic dimension; may be given several times")
      ->take_all()
      ->option_text("NAME=N");
}

void refuse_overwriting(const ModelArguments& arguments, const std::string& output) {
  std::error_code error;  // where one of them does not exist, they are not the same
  if (std::filesystem::equivalent(arguments.model, output, error))
    throw user_error("{} is the model itself, which would be lost", output);
}

namespace {

std::map<std::string, Dim> sizes_of(const ModelArguments& arguments) {
  std::map<std::string, Dim> sizes;
  for (const auto& [name, size] : parse_bindings(arguments.dims))
    sizes.emplace(name, size);
  return sizes;
}

std::unique_ptr<Graph> load_saved_model(const ModelArguments& arguments) {
  if (!arguments.takes_programs)
    throw user_error(
        "{} is a saved program, which tenon run, bench, profile and print take\n"
        "  hint: give the model that it was made of",
        arguments.model);
  if (!arguments.dims.empty())
    throw user_error("--dim is for a model: {} is a saved program, for which it was decided by tenon compile",
                     arguments.model);
  return read_saved_model(arguments.model);
}

}  // namespace

std::unique_ptr<Graph> load_model(const ModelArguments& arguments, const onnx::ImportOptions& options) {
  const std::map<std::string, Dim> sizes = sizes_of(arguments);
  if (is_saved_program(arguments.model))
    return load_saved_model(arguments);
  std::unique_ptr<Graph> graph = read_model(arguments.model, options);
  if (sizes.empty())
    return graph;
  std::set<std::string> symbols;
  for (Value input : graph->inputs())
    symbols.merge(symbols_of(input.type()));
  for (const auto& [name, size] : sizes) {
    const char* several = name.find(',') == std::string::npos ? "" : "; each is given by a --dim of its own";
    if (!symbols.contains(name))
      throw user_error("--dim {}={}: no input has a dimension {}\n  hint: {}", name, size, name,
                       symbols.empty() ? "the sizes of all inputs are fixed"
                                       : fmt::format("there are {}{}", fmt::join(symbols, ", "), several));
  }
  return with_context([&] { return arguments.model; }, [&] { return graph->bind(sizes); });
}

std::optional<optimizer::Source> source_of(const ModelArguments& arguments) {
  std::optional<optimizer::Source> source = optimizer::source_of(arguments.model);
  if (source)
    source->sizes = sizes_of(arguments);
  return source;
}

}  // namespace tenon::cli
