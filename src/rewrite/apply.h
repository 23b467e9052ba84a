// apply.h — applies rules until none fires any more.
#pragma once

#include "rewrite/rule.h"

namespace tenon {

// Goes through the nodes of the graph and of those nested in it, and then through what each rewrite touched,
// so the work is in proportion to the graph and to what changes. Of several rules that match, the first
// counts. Nodes that nothing uses any more are erased. Returns how many rewrites were made.
int64_t apply_rules(Graph& graph, const Rules& rules, Journal& journal);

// Applies the rule wherever it matches what stands there now, and not to what it makes. Of matches that
// overlap, the first in the graph's order counts. What replaces a match may be of unknown rank, as the match
// is; if it has another type, or the gate refuses it, that is the user's fault.
int64_t apply_once(Graph& graph, const Rule& rule, Journal& journal);

// The ops that a match of the pattern may end in.
std::vector<std::string> root_ops(const Pattern& pattern);

// Erases the node if nothing uses its results, and then what only it used. `erased` is told of each before.
void erase_unused(Node* node, const std::function<void(Node*)>& erased = nullptr);

}  // namespace tenon
