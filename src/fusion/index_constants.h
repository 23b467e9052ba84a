// index_constants.h — constants that count, as positions in a sequence do.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::fusion {

// Loads of i64 constants whose elements go up by one number along each dimension become indices: whoever
// compares positions then says so.
void index_constants(lowering::KernelGraph& graph);

}  // namespace tenon::fusion
