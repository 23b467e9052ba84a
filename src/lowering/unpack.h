// unpack.h — the constants of a kernel graph as they lie in memory, and its definitions with packed operands
// read where these have their elements: what both of its interpreters need.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::lowering {

// Whether a buffer is a constant that definitions read. Weights that are transformed, or split into bf16, are
// not: what is computed as written reads what they are made of.
bool is_readable_constant(const KernelGraph& graph, BufferId id);
// The elements of a readable constant as they lie in memory.
Tensor constant_in_memory(const KernelGraph& graph, BufferId id);
// Those of what it is made of, packed into words if they are, in the order of the graph.
Tensor constant_elements(const KernelGraph& graph, BufferId id);

// The index among weights of these extents that an index of packed B stands for.
Extents index_in_weights(const PackedBLayout& layout, const Extents& weights, std::span<const int64_t> index);

// What a stage computes, in terms of buffers as they lie in memory. Of a Winograd convolution, and of a
// product split into bf16, that is the definition as written.
loops::Definition readable_definition(const KernelGraph& graph, const Stage& stage);

}  // namespace tenon::lowering
