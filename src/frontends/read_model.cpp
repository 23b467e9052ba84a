#include "frontends/read_model.h"

#include <filesystem>

#include "base/error.h"
#include "base/mapped_file.h"
#include "base/mistaken_file.h"
#include "frontends/builtin/builtin.h"
#include "frontends/torch/import.h"
#include "ir/parse.h"

namespace tenon {
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

// Runs `read`; where it refuses a file that is plainly something else, the error says so.
template <class Read>
std::unique_ptr<Graph> read_or_hint(const std::filesystem::path& path, Read&& read) {
  try {
    return read(path);
  } catch (const UserError& error) {
    if (!std::filesystem::is_regular_file(path))
      throw;
    const auto file = MappedFile::open(path);
    const std::string_view hint = hint_at_content(file->bytes());
    if (hint.empty())
      throw;
    throw user_error("{}{}", error.what(), hint);
  }
}

}  // namespace

std::unique_ptr<Graph> read_model(const std::string& model, const onnx::ImportOptions& options) {
  constexpr std::string_view kBuiltin = "builtin:";
  if (model.starts_with(kBuiltin))
    return builtin::make_model(std::string_view(model).substr(kBuiltin.size()));
  const std::filesystem::path path = model;
  if (path.extension() == ".onnx")
    return onnx::read_onnx(path, options);
  if (path.extension() == ".pt2")
    return read_or_hint(path, [](const auto& file) { return torch::read_torch(file); });
  if (path.extension() == ".tenon")
    return read_or_hint(path, read_text);
  const bool is_checkpoint = path.extension() == ".pt" || path.extension() == ".pth";
  throw user_error(
      "{}: a model is a .onnx, .pt2 or .tenon file, or builtin:NAME{}", model,
      is_checkpoint ? "\n  hint: PyTorch writes such a model with torch.export.save(…, \"model.pt2\")" : "");
}

}  // namespace tenon
