// decompose_ops.h — nodes without a lowering become what they are made of.
#pragma once

#include "ir/graph.h"
#include "rewrite/journal.h"

namespace tenon {

// Replaces nodes that have no lower by their decomposition, where there is one; ops in `staying` are kept.
void decompose_ops(Graph& graph, Journal& journal, const std::set<std::string_view>& staying = {});

// Whether kernels can compute values of this type, or a node: element types that machines compute with, and
// sizes that can be counted.
bool has_code(const Type& type);
bool has_code(const Node& node);

// What the user's model calls a node; else its result, as %y, or its op.
std::vector<std::string> labels_of(const Node& node);

}  // namespace tenon
