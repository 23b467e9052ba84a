// barriers.h — before which statements the threads of a block wait for each other.
//
// Loops one after the other mean that the first ends before the second begins. Threads need to wait for that
// only where one accesses what another wrote, or writes what another accessed: not where each goes on with
// its own elements, as in
//
//   for j in 0..n thread { y[r,j] = 0 }
//   for k in 0..8 { for j in 0..n thread { y[r,j] += x[k,j] } }
#pragma once

#include <set>

#include "codegen/cuda/layouts.h"
#include "codegen/cuda/quads.h"

namespace tenon::codegen::cuda {

// Among the statements of the region that all threads run alike. `folds_synchronise` says that folds pass
// what each warp has through shared memory, with a barrier of their own. Before a pipelined loop, threads
// wait before its first copies; before the first of the copies in it, that is before those of a later
// iteration. `quads` are buffers in registers.
std::set<const loops::Statement*> find_barriers(const loops::Kernel& kernel, const PipelinedRegion& region,
                                                const Layouts& layouts,
                                                const std::map<std::string, QuadBuffer>& quads,
                                                bool folds_synchronise);

}  // namespace tenon::codegen::cuda
