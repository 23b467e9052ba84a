// fuse.h — which nodes of a KernelGraph become one kernel: producers inlined into consumers, nodes grouped,
// groups ordered.
#pragma once

#include <span>

#include "lowering/kernel_graph.h"
#include "rewrite/journal.h"

namespace tenon::fusion {

// Inlines stages that are cheaper to recompute where they are read than to store, but for the graph's
// outputs.
void inline_stages(lowering::KernelGraph& graph, const Target& target,
                   NumericsBudget numerics = NumericsBudget::Default);

// A buffer between two groups, and why they were not fused.
struct Missed {
  lowering::BufferId buffer;
  size_t reader;  // a node
  std::string reason;
};

struct Grouping {
  std::vector<lowering::Group> groups;  // each node is in one; in an order in which they can run
  std::vector<Missed> missed;
};

// A kernel of fewer rows leaves most cores idle, so that its reductions are better apart from what reads
// them.
inline constexpr int64_t kLeastRowsOfKernel = 8;

// Of nodes that follow each other. What is in `kept` is needed besides what they read.
Grouping group_nodes(std::span<const lowering::KernelNode> nodes, const lowering::BufferTable& buffers,
                     const std::set<lowering::BufferId>& kept, const Target& target,
                     NumericsBudget numerics = NumericsBudget::Default);

// Orders groups for a low memory peak, with independent loops adjacent.
void order_groups(lowering::KernelGraph& graph);

}  // namespace tenon::fusion
