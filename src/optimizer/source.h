// source.h — the ONNX file that a model was read from, so that it can be measured and read again.
#pragma once

#include <map>

#include "base/mapped_file.h"
#include "frontends/onnx/import.h"

namespace tenon::optimizer {

struct Source {
  std::shared_ptr<const MappedFile> file;
  std::optional<std::filesystem::path> folder = std::nullopt;  // of external weights, if not the file's own
  std::map<std::string, Dim> sizes = {};                       // that its symbolic dimensions were bound to

  std::unique_ptr<Graph> read(const onnx::ImportOptions& options = {}) const;
};

// Nothing where the model is not an ONNX file.
std::optional<Source> source_of(const std::string& model);
std::optional<Source> source_of(std::shared_ptr<const MappedFile> file,
                                const std::optional<std::filesystem::path>& folder);

}  // namespace tenon::optimizer
