// split_kernels.h — takes kernels apart that a GPU cannot run, or of which a multiprocessor runs one thread
// block only, where it runs more of their parts: then nothing runs while that block waits.
#pragma once

#include "compiler/fuse_graph.h"

namespace tenon::compiler {

struct SplitKernels {
  std::vector<lowering::Group> groups;  // those of the graph, or what they were taken apart into
  std::vector<fusion::Missed> missed;   // between these
};
SplitKernels split_kernels(const FusedGraph& graph, const KernelGraphContext& context);

}  // namespace tenon::compiler
