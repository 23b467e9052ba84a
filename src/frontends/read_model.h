// read_model.h — a model by its name: a file of ONNX, of PyTorch or of the text form, or a built-in one.
#pragma once

#include <memory>
#include <string>

#include "frontends/onnx/import.h"
#include "ir/graph.h"

namespace tenon {

// The path of a .onnx, .pt2 or .tenon file, or builtin:NAME.
std::unique_ptr<Graph> read_model(const std::string& model, const onnx::ImportOptions& options = {});

}  // namespace tenon
