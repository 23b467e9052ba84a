// load_model.h — what MODEL means on the command line.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "optimizer/source.h"

namespace tenon::cli {

struct ModelArguments {
  std::string model;              // a path, or builtin:NAME
  std::vector<std::string> dims;  // NAME=N
  bool takes_programs = false;    // saved ones, too

  void add_to(CLI::App& command);
};

// Writing something else over the model itself would lose it.
void refuse_overwriting(const ModelArguments& arguments, const std::string& output);

std::unique_ptr<Graph> load_model(const ModelArguments& arguments, const onnx::ImportOptions& options = {});

// Nothing where the model is not an ONNX file.
std::optional<optimizer::Source> source_of(const ModelArguments& arguments);

}  // namespace tenon::cli
