#include "cli/load_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "cli/bindings.h"
#include "frontends/builtin/builtin.h"
#include "ir/parse.h"

namespace tenon::cli {

void ModelArguments::add_to(CLI::App& command) {
  command.add_option("MODEL", model, "a file (.onnx, .tenon) or builtin:NAME")->required();
  command.add_option("--dim", dims, "binds a symbolic dimension: NAME=N")->take_all();
}

namespace {

std::unique_ptr<Graph> read_text(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  return with_context([&] { return path.string(); },
                      [&] {
                        return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                     {.folder = path.parent_path()});
                      });
}

std::unique_ptr<Graph> read_model(const std::string& model, const onnx::ImportOptions& options) {
  constexpr std::string_view kBuiltin = "builtin:";
  if (model.starts_with(kBuiltin))
    return builtin::make_model(std::string_view(model).substr(kBuiltin.size()));
  const std::filesystem::path path = model;
  if (path.extension() == ".onnx")
    return onnx::read_onnx(path, options);
  if (path.extension() == ".tenon")
    return read_text(path);
  throw user_error("{}: a model is a .onnx or .tenon file, or builtin:NAME", model);
}

}  // namespace

void refuse_overwriting(const ModelArguments& arguments, const std::string& output) {
  std::error_code error;  // where one of them does not exist, they are not the same
  if (std::filesystem::equivalent(arguments.model, output, error))
    throw user_error("{} is the model itself, which would be lost", output);
}

std::unique_ptr<Graph> load_model(const ModelArguments& arguments, const onnx::ImportOptions& options) {
  std::map<std::string, Dim> sizes;
  for (const std::string& dim : arguments.dims) {
    auto [name, size] = parse_binding(dim);
    sizes.insert_or_assign(std::move(name), size);
  }
  std::unique_ptr<Graph> graph = read_model(arguments.model, options);
  if (sizes.empty())
    return graph;
  std::set<std::string> symbols;
  for (Value input : graph->inputs())
    symbols.merge(symbols_of(input.type()));
  for (const auto& [name, size] : sizes)
    if (!symbols.contains(name))
      throw user_error("--dim {}={}: no input has a dimension {}\n  hint: {}", name, size, name,
                       symbols.empty() ? "the sizes of all inputs are fixed"
                                       : fmt::format("there are {}", fmt::join(symbols, ", ")));
  return with_context([&] { return arguments.model; }, [&] { return graph->bind(sizes); });
}

}  // namespace tenon::cli
