// import.h — a torch.export archive (.pt2) as a graph.
#pragma once

#include <filesystem>
#include <memory>

#include "base/mapped_file.h"
#include "ir/graph.h"

namespace tenon::torch {

// Ops come in with the meaning that PyTorch gives them; what is changed in place becomes new values, and what
// a run leaves in buffers and inputs becomes outputs after the others. Weights that are stored stay in the
// file.
std::unique_ptr<Graph> read_torch(const std::filesystem::path& path);
std::unique_ptr<Graph> read_torch(const std::shared_ptr<const MappedFile>& file);

}  // namespace tenon::torch
