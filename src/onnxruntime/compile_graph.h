// compile_graph.h — graphs of ONNX Runtime's compiled: for a session, or into a file that later ones open.
#pragma once

#include <filesystem>

#include "compiler/save_program.h"
#include "onnxruntime/api.h"

namespace tenon::onnxruntime {

// That Tenon compiles the graph, and ONNX Runtime can pass what it takes and gives: tensors. Anything else is
// a UserError.
void check_graph(const Ort::ConstGraph& graph);

std::unique_ptr<runtime::Executor> compile_graph(const Ort::ConstGraph& graph,
                                                 const compiler::CompileContext& context);

// The session that saves a program runs it: where none of the targets is for this machine, a user_error.
void check_runs_here(const std::vector<compiler::TargetToSave>& targets);
void save_graph(const Ort::ConstGraph& graph, const std::vector<compiler::TargetToSave>& targets,
                const std::filesystem::path& path);

}  // namespace tenon::onnxruntime
