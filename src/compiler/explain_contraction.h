// explain_contraction.h — why a contraction is computed as it is: what was weighed, and what decided.
#pragma once

#include "compiler/compile.h"

namespace tenon::compiler {

// Of the contractions that a node of the user's model became, by what fusion made of the graph. A name of no
// node is a user_error that says which was likely meant.
std::string explain_contraction(const FusionReport& fusion, const std::string& node);

}  // namespace tenon::compiler
