// import.h — a language model in a GGUF file, as a graph from token ids to logits.
#pragma once

#include <filesystem>
#include <memory>

#include "base/mapped_file.h"
#include "ir/graph.h"

namespace tenon::gguf {

// Weights stay in the file; blocks of integers are dequantized in the graph.
std::unique_ptr<Graph> read_gguf(const std::filesystem::path& path);
std::unique_ptr<Graph> read_gguf(const std::shared_ptr<const MappedFile>& file);

}  // namespace tenon::gguf
