// compile_model.h — a model made ready to run on this machine, with progress where that takes long.
#pragma once

#include <CLI/CLI.hpp>

#include "base/progress.h"
#include "compiler/compile.h"
#include "passes/pipeline.h"

namespace tenon::cli {

// Shows which pass runs.
std::vector<PassReport> optimize_model(Graph& graph, Journal& journal, OptimizeOptions options = {});
// As tenon optimize does it, without the passes of these names.
void optimize_model(Graph& graph, NumericsBudget numerics = NumericsBudget::Default,
                    const std::set<std::string>& disabled = {});

// The option --precision, of how products are computed.
void add_precision(CLI::App& command, std::string& precision);
Precision parse_precision(const std::string& precision);

// Shows how many kernels are compiled; `progress` must outlive the options.
void show_progress(CompileOptions& options, std::optional<Progress>& progress);

std::unique_ptr<Program> compile_model(const Graph& graph, CompileOptions options = {});
ExplainedProgram compile_model_explained(const Graph& graph, CompileOptions options = {});

}  // namespace tenon::cli
