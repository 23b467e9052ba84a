// borders.h — padding around results.
#pragma once

#include "lowering/kernel_graph.h"

namespace tenon::schedule {

// Fills the padding of the stages' results in `outputs`, before the first and after the last element along
// each dimension, with zeros or the stage's padding value.
std::vector<loops::Statement> fill_borders(const std::vector<lowering::Stage>& stages,
                                           const std::set<std::string>& outputs);

// The same for one result, whose elements are in [begin, end) along a dimension.
std::vector<loops::Statement> fill_border(const loops::Buffer& result, const lowering::Stage& stage,
                                          size_t dim, const Dim& begin, const Dim& end);

}  // namespace tenon::schedule
