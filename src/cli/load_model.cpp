#include "cli/load_model.h"

#include <charconv>
#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "frontends/builtin/builtin.h"
#include "frontends/onnx/import.h"
#include "ir/parse.h"

namespace tenon::cli {

void ModelArguments::add_to(CLI::App& command) {
  command.add_option("MODEL", model, "a file (.onnx, .tenon) or builtin:NAME")->required();
  command.add_option("--dim", dims, "binds a symbolic dimension: NAME=N")->take_all();
}

std::map<std::string, Dim> ModelArguments::bound_dims() const {
  std::map<std::string, Dim> bound;
  for (const std::string& dim : dims) {
    const size_t equals = dim.rfind('=');
    int64_t size = -1;
    if (equals != std::string::npos)
      std::from_chars(dim.data() + equals + 1, dim.data() + dim.size(), size);
    if (equals == std::string::npos || equals == 0 || size < 0)
      throw user_error("--dim {}: it should look like batch=4", dim);
    bound.insert_or_assign(dim.substr(0, equals), Dim(size));
  }
  return bound;
}

std::unique_ptr<Graph> load_model(const ModelArguments& arguments) {
  constexpr std::string_view kBuiltin = "builtin:";
  if (arguments.model.starts_with(kBuiltin))
    return builtin::make_model(std::string_view(arguments.model).substr(kBuiltin.size()));
  const std::filesystem::path path = arguments.model;
  if (path.extension() == ".onnx")
    return onnx::read_onnx(path, {.dims = arguments.bound_dims()});
  if (path.extension() == ".tenon")
    return with_context([&] { return path.string(); },
                        [&] {
                          const auto file = MappedFile::open(path);
                          const auto bytes = file->bytes();
                          return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                       {.folder = path.parent_path()});
                        });
  throw user_error("{}: a model is a .onnx or .tenon file, or builtin:NAME", arguments.model);
}

}  // namespace tenon::cli
