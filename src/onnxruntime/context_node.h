// context_node.h — EPContext nodes, by which a model of ONNX Runtime's holds a saved program, or names its
// file.
#pragma once

#include <filesystem>

#include "onnxruntime/api.h"
#include "runtime/executor.h"
#include "runtime/program_file.h"

namespace tenon::onnxruntime {

// What a session's options say of the model with such a node that it writes.
struct ContextModelOptions {
  bool is_written = false;
  bool is_embedded = false;          // the program, in the node
  std::filesystem::path model = {};  // that is written; empty where it is named after the one that is read
};
ContextModelOptions read_context_options(const Ort::ConstSessionOptions& options);

// Where the program goes that is not embedded: beside the model that is written.
std::filesystem::path program_path(const ContextModelOptions& options,
                                   const std::filesystem::path& model_read);

// That stands for `fused` in the model that is written; the program is in that file.
Ort::Node make_context_node(const Ort::ConstNode& fused, const runtime::ProgramFile& program,
                            bool is_embedded);

// Whether a node is one of Tenon's.
bool is_context_node(const Ort::ConstNode& node);

// Opens the program of a node. Files are found in this folder.
std::shared_ptr<const runtime::Executor> open_context(const Ort::ConstNode& node,
                                                      const std::filesystem::path& folder,
                                                      bool check_weights);

}  // namespace tenon::onnxruntime
