#include "optimizer/source.h"

#include "base/error.h"

namespace tenon::optimizer {

std::unique_ptr<Graph> Source::read(const onnx::ImportOptions& options) const {
  onnx::ImportOptions with_folder = options;
  with_folder.folder = folder;
  std::unique_ptr<Graph> graph = onnx::read_onnx(file, with_folder);
  if (sizes.empty())
    return graph;
  return with_context([&] { return file->path().string(); }, [&] { return graph->bind(sizes); });
}

std::optional<Source> source_of(const std::string& model) {
  if (!model.ends_with(".onnx"))
    return std::nullopt;
  return Source{MappedFile::open(model)};
}

std::optional<Source> source_of(std::shared_ptr<const MappedFile> file,
                                const std::optional<std::filesystem::path>& folder) {
  if (file->path().extension() != ".onnx")
    return std::nullopt;
  return Source{std::move(file), folder};
}

}  // namespace tenon::optimizer
