// target_graph.h — the graph as the target pipeline leaves it: what is lowered.
#pragma once

#include "compiler/compile_context.h"

namespace tenon::compiler {

// A copy of the graph in which no symbol of a size may be mistaken for a loop variable: those end in a
// number.
std::unique_ptr<Graph> copy_for_loops(const Graph& graph);

// The target pipeline (passes/target_pipeline.h) for a context, with what its passes refer to.
class TargetPipeline {
 public:
  explicit TargetPipeline(const CompileContext& context);
  TargetPipeline(const TargetPipeline&) = delete;
  TargetPipeline& operator=(const TargetPipeline&) = delete;

  const std::vector<Pass>& passes() const { return passes_; }
  // Runs it once; `options` may observe the passes, its pipeline is replaced.
  void run(Graph& graph, Journal& journal, PipelineOptions options = {.pipeline = {}}) const;

 private:
  CompileContext context_;
  TargetContext target_;
  std::vector<Pass> passes_;
};

// A copy of the graph after the target pipeline. The journal says how many rewrites may be
// made, and is told of them; `options` may observe the passes, its pipeline is replaced.
std::unique_ptr<Graph> make_target_graph(const Graph& graph, const CompileContext& context, Journal& journal,
                                         PipelineOptions options = {.pipeline = {}});

}  // namespace tenon::compiler
