// apply.h — applies rules until none fires any more.
#pragma once

#include "rewrite/rule.h"

namespace tenon {

// Goes through the nodes of the graph and of those nested in it, and then through what each rewrite touched,
// so the work is in proportion to the graph and to what changes. Of several rules that match, the first
// counts. Nodes that nothing uses any more are erased. Returns how many rewrites were made.
int64_t apply_rules(Graph& graph, const Rules& rules, Journal& journal);

// Erases the node if nothing uses its results, and then what only it used. `erased` is told of each before.
void erase_unused(Node* node, const std::function<void(Node*)>& erased = nullptr);

}  // namespace tenon
