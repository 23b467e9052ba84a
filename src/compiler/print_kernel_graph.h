// print_kernel_graph.h — the kernel graph of a model, as text, on its way to kernels.
#pragma once

#include "compiler/compile_context.h"

namespace tenon::compiler {

// Lowered: before any pass over it. Select: with layouts, algorithms and packing chosen, before fusion.
// Grouped: with the nodes of each kernel together.
enum class KernelGraphStage : uint8_t { Lowered, Select, Grouped };

std::string print_kernel_graph(const Graph& graph, const CompileContext& context, KernelGraphStage stage);

}  // namespace tenon::compiler
