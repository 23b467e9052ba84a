#include "frontends/read_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/mistaken_file.h"
#include "frontends/builtin/builtin.h"
#include "frontends/gguf/container.h"
#include "frontends/gguf/import.h"
#include "frontends/torch/import.h"
#include "ir/parse.h"

namespace tenon {
namespace {

std::unique_ptr<Graph> read_text(const MappedFile& file, const onnx::ImportOptions& options) {
  const auto bytes = file.bytes();
  ParseOptions how{.folder = options.folder};
  if (!how.folder && file.is_on_disk())
    how.folder = file.path().parent_path();
  return with_context([&] { return file.path().string(); },
                      [&] {
                        return parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, how);
                      });
}

// Runs `read`; where it refuses a file that is plainly something else, the error says so.
template <class Read>
std::unique_ptr<Graph> read_or_hint(const MappedFile& file, Read&& read) {
  try {
    return read();
  } catch (const UserError& error) {
    const std::string_view hint = hint_at_content(file.bytes());
    if (hint.empty())
      throw;
    throw user_error("{}{}", error.what(), hint);
  }
}

// Whether the extension is of a model, else an error, which comes before the file is opened.
void check_extension(const std::filesystem::path& path, std::string_view or_else) {
  const std::string extension = path.extension();
  if (extension == ".onnx" || extension == ".pt2" || extension == ".gguf" || extension == ".tenon")
    return;
  const bool is_checkpoint = extension == ".pt" || extension == ".pth";
  throw user_error(
      "{}: a model is a .onnx, .pt2, .gguf or .tenon file{}{}", path.string(), or_else,
      is_checkpoint ? "\n  hint: PyTorch writes such a model with torch.export.save(…, \"model.pt2\")" : "");
}

}  // namespace

std::unique_ptr<Graph> read_model(const std::string& model, const onnx::ImportOptions& options) {
  constexpr std::string_view kBuiltin = "builtin:";
  if (model.starts_with(kBuiltin))
    return builtin::make_model(std::string_view(model).substr(kBuiltin.size()));
  check_extension(model, ", or builtin:NAME");
  return read_model(MappedFile::open(model), options);
}

std::unique_ptr<Graph> read_model(const std::shared_ptr<const MappedFile>& file,
                                  const onnx::ImportOptions& options) {
  check_extension(file->path(), "");
  const std::string extension = file->path().extension();
  if (extension == ".gguf" || gguf::is_gguf(*file))
    return gguf::read_gguf(file);
  if (extension == ".onnx")
    return onnx::read_onnx(file, options);
  if (extension == ".pt2")
    return read_or_hint(*file, [&] { return torch::read_torch(file); });
  return read_or_hint(*file, [&] { return read_text(*file, options); });
}

}  // namespace tenon
