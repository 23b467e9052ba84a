// read_model.h — a model by its name: a file of ONNX, of PyTorch, of GGUF or of the text form, or a built-in
// one. Or what such a file holds.
#pragma once

#include <memory>
#include <string>

#include "frontends/onnx/import.h"
#include "ir/graph.h"

namespace tenon {

// The path of a .onnx, .pt2, .gguf or .tenon file, or builtin:NAME.
std::unique_ptr<Graph> read_model(const std::string& model, const onnx::ImportOptions& options = {});

// The extension of its name says of which kind it is; GGUF is also told by how it starts. Where it is not on
// disk, constants may lie in other files if a folder for them is given.
std::unique_ptr<Graph> read_model(const std::shared_ptr<const MappedFile>& file,
                                  const onnx::ImportOptions& options = {});

}  // namespace tenon
