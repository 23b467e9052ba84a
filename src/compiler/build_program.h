// build_program.h — a program of scheduled kernels: the slots of all values, the steps, and how constants
// are made of the weights. It has no code yet.
#pragma once

#include "compiler/build_kernels.h"
#include "runtime/program.h"

namespace tenon::compiler {

// What a graph without inputs that computes weights, or a nested graph, becomes. Where it is null, these are
// left to the reference evaluator.
using CompileNested = std::function<std::shared_ptr<runtime::Program>(const Graph&)>;

// Slots and prepare part alone, which do not depend on the kernels. Constants in memory move from the graph
// to the program.
std::shared_ptr<runtime::Program> build_slots(Graph& graph, const FusedGraph& fused,
                                              const CompileContext& context, const CompileNested& compile);

// Adds the steps.
void build_steps(runtime::Program& program, const FusedGraph& fused, const Kernels& kernels,
                 const CompileContext& context, const CompileNested& compile);

}  // namespace tenon::compiler
