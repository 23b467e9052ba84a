// lint.h — the verifier: is this graph well formed, and do its types say what inference says?
#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// What is wrong, one sentence each, naming the node; empty when nothing is.
std::vector<std::string> lint(const Graph& graph);

}  // namespace tenon
