// overlapped_tiling.h — which chains of kernels gain by overlapped tiling.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::fusion {

// Merges groups where an intermediate value with one reader would not stay in cache otherwise.
// `items` are what groups consist of; what is in `kept` is needed besides what these read.
void overlapped_tiling(std::vector<lowering::Group>& groups, const std::vector<lowering::Item>& items,
                       const std::map<std::string, loops::Buffer>& buffers, const std::set<std::string>& kept,
                       const Target& target, int threads);

}  // namespace tenon::fusion
