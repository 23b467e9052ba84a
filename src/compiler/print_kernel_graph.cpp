#include "compiler/print_kernel_graph.h"

#include "compiler/fuse_graph.h"
#include "compiler/target_graph.h"
#include "lowering/lower_graph.h"
#include "lowering/print.h"

namespace tenon::compiler {

using lowering::KernelGraph;

std::string print_kernel_graph(const Graph& graph, const CompileContext& context, KernelGraphStage stage) {
  Journal journal(context.numerics);
  const std::unique_ptr<Graph> target_graph = make_target_graph(graph, context, journal);
  KernelGraph lowered = lowering::lower_graph(*target_graph);
  if (stage == KernelGraphStage::Lowered)
    return print(lowered);
  std::string selected = print(lowered);
  KernelGraphContext passes = kernel_graph_context(context);
  passes.after_pass = [&](const KernelGraphPass&, const KernelGraph& left) {
    if (stage == KernelGraphStage::Select && left.groups.empty())
      selected = print(left);
  };
  const FusedGraph fused(std::move(lowered), passes);
  return stage == KernelGraphStage::Select ? selected : print(fused.graph());
}

}  // namespace tenon::compiler
