// borders.h — results that have a border around them.
#pragma once

#include "fusion/stage.h"

namespace tenon {

// Puts zeros, or what a stage says, where no element of the stages' results in `outputs` stands: before the
// first and after the last along each dimension.
std::vector<loops::Statement> fill_borders(const std::vector<Stage>& stages,
                                           const std::set<std::string>& outputs);

}  // namespace tenon
