// import.h — a torch.export archive (.pt2) as a graph.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "ir/graph.h"
#include "tensor/literal.h"

namespace tenon::torch {

// The elements of a weight (a parameter or buffer) or constant, by its name in the program.
struct WeightSource {
  std::function<Literal(const std::string&)> weight, constant;
};

// A node that has no conversion here, or one that does not go as far.
struct RefusedNode {
  std::string name, reason;
};

// A program that is not in an archive: the text of its models/model.json. Where nodes are refused, these are
// listed, and there is no graph.
std::unique_ptr<Graph> read_program(std::string_view json, const WeightSource& weights,
                                    std::vector<RefusedNode>& refused);

// Ops come in with the meaning that PyTorch gives them; what is changed in place becomes new values, and what
// a run leaves in buffers and inputs becomes outputs after the others. Weights that are stored stay in the
// file.
std::unique_ptr<Graph> read_torch(const std::filesystem::path& path);
std::unique_ptr<Graph> read_torch(const std::shared_ptr<const MappedFile>& file);

}  // namespace tenon::torch
