// compile_model.h — a model made ready to run on this machine, with progress where that takes long.
#pragma once

#include <CLI/CLI.hpp>

#include "api/default_context.h"
#include "base/progress.h"
#include "compiler/compile.h"
#include "passes/pipeline.h"

namespace tenon::cli {

// Shows which pass runs; `progress` must outlive the options.
void show_progress(PipelineOptions& options, Progress& progress);
std::vector<PassReport> optimize_model(Graph& graph, Journal& journal, PipelineOptions options = {});
// As tenon optimize does it, without the passes of these names.
void optimize_model(Graph& graph, NumericsBudget numerics = NumericsBudget::Default,
                    const std::set<std::string>& disabled = {});

// The option --precision, of how products are computed.
void add_precision(CLI::App& command, std::string& precision);
MatmulPrecision parse_precision(const std::string& precision);

// The option --device, of where the model runs.
void add_device(CLI::App& command, std::string& device);

// Shows how many kernels are compiled; `progress` must outlive the context.
void show_progress(compiler::CompileContext& context, std::optional<Progress>& progress);

std::unique_ptr<runtime::Executor> compile_model(const Graph& graph,
                                                 compiler::CompileContext context = api::default_context());
compiler::ExplainedProgram compile_model_explained(const Graph& graph,
                                                   compiler::CompileContext context = api::default_context());

}  // namespace tenon::cli
