// split_reductions.h — long reductions to few elements in two steps, so that every multiprocessor takes part:
// first parts of each, then what these combine to. The order is fixed, so that the bits are the same in every
// run.
#pragma once

#include "fusion/fuse.h"
#include "target/target.h"

namespace tenon::schedule::cuda {

// Says of products why their parts are not added where they are computed.
std::vector<fusion::Missed> split_reductions(lowering::KernelGraph& graph, const Target& target,
                                             NumericsBudget numerics);

}  // namespace tenon::schedule::cuda
