// compile.h — compiles a graph to a program: target pipeline, lowering, fusion, scheduling, code.
#pragma once

#include "compiler/compile_context.h"
#include "fusion/cost.h"
#include "loops/kernel.h"
#include "runtime/executor.h"

namespace tenon::compiler {

// The program that computes what the graph computes, loaded to run. What no code can be generated for falls
// back to the host. Where the graph gains by known sizes, those that recur are compiled for by themselves.
std::unique_ptr<runtime::Executor> compile(const Graph& graph, const CompileContext& context);

// The same before it is loaded: for any target, whatever machine this is.
std::shared_ptr<runtime::Program> program_of(const Graph& graph, const CompileContext& context);

// The same, and what the kernels of its steps compute, in order.
struct CountedProgram {
  std::shared_ptr<runtime::Program> program;
  std::vector<Dim> operations;
};
CountedProgram program_with_operations(const Graph& graph, const CompileContext& context);

// What fusion made of a graph.
struct FusedKernel {
  std::vector<std::string> sources;  // nodes of the user's model
  fusion::KernelCost cost;
  std::optional<lowering::Stage> contraction;  // that it computes, or that it moves elements for
};
struct UnfusedEdge {
  size_t from, to;  // kernels, in the order in which they run
  loops::Buffer buffer;
  std::string reason;
};
struct FusionReport {
  std::vector<fusion::KernelCost> before;  // a kernel for each step
  std::vector<FusedKernel> after;
  std::vector<UnfusedEdge> edges;
};
FusionReport fusion_of(const Graph& graph, const CompileContext& context);

// The kernels of the program, in order, as they are handed to the code generator.
std::vector<loops::Kernel> kernels_of(const Graph& graph, const CompileContext& context);

// What a program is made of, before code is generated: for any target, whatever machine this is. Nested
// graphs of host steps are not part of it.
struct ScheduledGraph {
  std::shared_ptr<runtime::Program> program;  // without code
  std::vector<Tensor> constants;              // of its slots
  std::vector<loops::Kernel> kernels;         // of the steps that are kernels, in order
};
ScheduledGraph schedule_graph(const Graph& graph, const CompileContext& context);

// A program, and what fusion_of and kernels_of say of it.
struct ExplainedProgram {
  std::unique_ptr<runtime::Executor> executor;
  FusionReport fusion;
  std::vector<loops::Kernel> kernels;
  std::vector<loops::Kernel> plain;  // the same before they are arranged for a machine, to be read
};
ExplainedProgram compile_explained(const Graph& graph, const CompileContext& context);

}  // namespace tenon::compiler
