// optimization.h — what optimising a model did and left alone, for people.
#pragma once

#include "passes/pipeline.h"

namespace tenon::cli {

// One row for each pass that changed something, however often it ran, and one for all others.
std::string pass_table(const std::vector<PassReport>& reports);
// A line for each rewrite that was not made, with the reason.
std::string remark_list(const std::set<Remark>& remarks);

}  // namespace tenon::cli
