// compile_model.h — a model made ready to run on this machine, with progress where that takes long.
#pragma once

#include "compiler/compile.h"
#include "rewrite/journal.h"

namespace tenon::cli {

// As tenon optimize does it.
void optimize_model(Graph& graph, NumericsBudget numerics = NumericsBudget::Default);

std::unique_ptr<Program> compile_model(const Graph& graph, CompileOptions options = {});

}  // namespace tenon::cli
