// target_graph.h — the graph as the target pipeline leaves it: what is lowered.
#pragma once

#include "compiler/compile_context.h"

namespace tenon::compiler {

// A copy of the graph in which no symbol of a size may be mistaken for a loop variable: those end in a
// number.
std::unique_ptr<Graph> copy_for_loops(const Graph& graph);

// The graph after the target pipeline (passes/target_pipeline.h). The journal says how many rewrites may be
// made, and is told of them; `options` may observe the passes, its pipeline is replaced.
std::unique_ptr<Graph> make_target_graph(const Graph& graph, const CompileContext& context, Journal& journal,
                                         OptimizeOptions options = {.pipeline = {}});

}  // namespace tenon::compiler
