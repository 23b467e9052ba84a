// write.h — a graph as an ONNX model.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "ir/graph.h"

namespace tenon::onnx {

struct WriteOptions {
  // Of the standard domain: what is newer there is decomposed, or refused. Without one, the oldest that has
  // every op of the graph, from opset 13 on.
  std::optional<int64_t> opset = std::nullopt;
  // Where none is asked for, it is not older than this: that of the file that was read.
  int64_t wanted_opset = 0;
  // Ops that are written as their decompositions, where they have one.
  std::set<std::string, std::less<>> avoided = {};
  // Weights of more bytes than this, taken together, go to a file of their own: PATH.data, beside the model.
  uint64_t most_inside = uint64_t{64} << 20;
};

struct Written {
  int64_t opset = 0;
  std::string newest_op = "";  // that needs it, where none older would do; empty where all do
  uint64_t data_bytes = 0;     // in PATH.data; 0 where there is none
  int64_t nodes = 0;           // those of nested graphs too
};

// Only ops of the standard domains are written. An op that they do not have, or not for such dtypes, is the
// user's fault. Files are written whole or not at all, and weights one at a time.
Written write_onnx(const Graph& graph, const std::filesystem::path& path, const WriteOptions& options = {});

// A model that would be written, but for the elements of its weights, which are not computed.
struct Outline {
  std::string model;
  uint64_t weight_bytes = 0;  // of those elements
  // How many of its nodes stand for one node of the user's and no other, by that one's name.
  std::map<std::string, int64_t, std::less<>> nodes_of = {};

  uint64_t bytes() const { return model.size() + weight_bytes; }
};
Outline outline_onnx(const Graph& graph, const WriteOptions& options = {});

// The nodes of the user's, by their names, that ONNX has no ops for: with them, a graph cannot be written.
std::set<std::string> find_unwritable(const Graph& graph, const WriteOptions& options = {});

}  // namespace tenon::onnx
