// import.h — an ONNX model as a graph.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/mapped_file.h"
#include "ir/graph.h"

namespace tenon::onnx {

constexpr int64_t kNewestOpset = 28;  // of the standard domain: the newest whose meaning we know

struct ImportOptions {
  // Graph inputs that are fed though the model has a value for them. The others of that kind are constants.
  std::set<std::string, std::less<>> overridden = {};
  // Where the files of weights are that the model names; nothing: beside it, where it is on disk.
  std::optional<std::filesystem::path> folder = std::nullopt;
  // Nodes, by their names, that come in as they are, to be written again; those with nested graphs never do.
  std::set<std::string, std::less<>> kept = {};
  // Whether batch normalisation in training gives the next values of its statistics as outputs of the graph,
  // under the names of the parameters.
  bool gives_statistics = false;
};

// Every op, of any opset, comes in with one meaning; local functions are inlined; weights stay in their
// files.
std::unique_ptr<Graph> read_onnx(const std::filesystem::path& path, const ImportOptions& options = {});
std::unique_ptr<Graph> read_onnx(std::shared_ptr<const MappedFile> file, const ImportOptions& options = {});

}  // namespace tenon::onnx
