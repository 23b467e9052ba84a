// borders.h — results that have zeros around them.
#pragma once

#include "fusion/stage.h"

namespace tenon {

// Puts zeros where no element of the stages' results in `outputs` stands: before the first and after the last
// along each dimension.
std::vector<loops::Statement> clear_borders(const std::vector<Stage>& stages,
                                            const std::set<std::string>& outputs);

}  // namespace tenon
