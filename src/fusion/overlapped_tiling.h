// overlapped_tiling.h — which kernels gain by running tile by tile.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::fusion {

// Makes one group of several where what one makes and the next alone reads does not stay in cache otherwise.
// `items` are what groups consist of; what is in `kept` is needed besides what these read.
void overlapped_tiling(std::vector<lowering::Group>& groups, const std::vector<lowering::Item>& items,
                       const std::map<std::string, loops::Buffer>& buffers, const std::set<std::string>& kept,
                       const Target& target, int threads);

}  // namespace tenon::fusion
