// permute_axes.h — pointwise stages that read their operand in another order of axes.
#pragma once

#include "loops/definition.h"

namespace tenon::fusion {

// The definition with its axes in the order of those it reads, given by their buffers, which share one order.
// Nothing where it is not pointwise, or the contiguous axis would change.
std::optional<loops::Definition> permuted_like(const std::map<std::string, loops::Definition>& makers,
                                               loops::Definition definition);

}  // namespace tenon::fusion
