// find_bands.h — which kernels gain by running band by band.
#pragma once

#include "fusion/stage.h"

namespace tenon {

// Makes one group of several where what one makes and the next alone reads does not stay in cache otherwise.
// `items` are what groups consist of; what is in `kept` is needed besides what these read.
void find_bands(std::vector<Group>& groups, const std::vector<Item>& items,
                const std::map<std::string, loops::Buffer>& buffers, const std::set<std::string>& kept,
                const Target& target, int threads);

}  // namespace tenon
