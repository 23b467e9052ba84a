#include "cli/load_model.h"

#include <filesystem>

#include "base/error.h"
#include "cli/bindings.h"
#include "cli/options.h"
#include "frontends/builtin/builtin.h"
#include "frontends/read_model.h"

namespace tenon::cli {

void ModelArguments::add_to(CLI::App& command) {
  CLI::Option* option = command.add_option("MODEL", model, "a file (.onnx, .pt2, .tenon) or builtin:NAME");
  Offer offered = {.takes_files = true, .suffixes = {".onnx", ".pt2", ".tenon"}};
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

}  // namespace

std::unique_ptr<Graph> load_model(const ModelArguments& arguments, const onnx::ImportOptions& options) {
  const std::map<std::string, Dim> sizes = sizes_of(arguments);
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
