// borders.h — results that have a border around them.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// Puts zeros, or what a stage says, where no element of the stages' results in `outputs` stands: before the
// first and after the last along each dimension.
std::vector<loops::Statement> fill_borders(const std::vector<lowering::Stage>& stages,
                                           const std::set<std::string>& outputs);

// The same for one result of a stage, whose elements stand from `begin` to before `end` along a dimension.
std::vector<loops::Statement> fill_border(const loops::Buffer& result, const lowering::Stage& stage,
                                          size_t dim, const Dim& begin, const Dim& end);

}  // namespace tenon::schedule
