// beside_unfused.h — what fusion gains, measured in a moment.
#pragma once

#include "cli/contenders.h"

namespace tenon::cli {

// One graph compiled as Tenon does it, beside another with a kernel for each node.
std::vector<Contender> measure_beside_unfused(const Graph& fused, const Graph& unfused);

// What both need and take.
std::string table_of_all(const std::vector<Contender>& contenders);

}  // namespace tenon::cli
