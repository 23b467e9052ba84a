// explained_model.h — a model optimised, compiled and measured, with all that was recorded on the way.
#pragma once

#include "passes/pipeline.h"
#include "report/graph_history.h"
#include "report/measure.h"
#include "report/modules.h"
#include "verify/verify.h"

namespace tenon {

struct ExplainedModel {
  GraphHistory history;
  Modules modules;
  Journal journal;
  std::vector<PassReport> passes;
  std::vector<size_t> stages;  // the stage of the history that each rewrite led to
  double compiling = 0;        // in seconds; without the passes
  compiler::ExplainedProgram compiled;
  Measurement measurement;
  std::vector<std::vector<int64_t>> nodes;  // of the last stage, that each step of the program computes
};

// The graph as it was read is optimised on the way. Names of nodes in what is compiled and measured are those
// of the user's model.
ExplainedModel explain(Graph& graph, const Data& inputs, const compiler::CompileContext& compile,
                       const MeasureOptions& measure,
                       const std::vector<Pass>& pipeline = portable_pipeline());

}  // namespace tenon
