// conv3x3.h — which convolutions are by windows of 3 x 3, such that they may be computed in tiles.
#pragma once

#include "lowering/lower_graph.h"
#include "schedule/cpu/winograd_cost.h"

namespace tenon::schedule {

// The constant factor of a product, where it is no more than a load; null where there is none.
const loops::Scalar* find_weights(const loops::Definition& definition, const lowering::LoweredGraph& lowered);

// The sizes of such a convolution of an image by weights; nothing of another.
std::optional<Conv3x3> match_conv3x3(const loops::Definition& definition, const loops::Scalar& image,
                                     const loops::Scalar* weights,
                                     const std::map<std::string, loops::Buffer>& buffers);

}  // namespace tenon::schedule
