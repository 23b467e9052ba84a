// conv3x3.h — matches 3 x 3 convolutions that Winograd can compute.
#pragma once

#include "lowering/lower_graph.h"
#include "schedule/cpu/winograd_cost.h"

namespace tenon::schedule {

// The constant operand of a product, where it is a plain load; null where there is none.
const loops::Scalar* find_weights(const loops::Definition& definition, const lowering::LoweredGraph& lowered);

// The sizes of such a convolution of an image by weights; nothing of another.
std::optional<Conv3x3> match_conv3x3(const loops::Definition& definition, const loops::Scalar& image,
                                     const loops::Scalar* weights,
                                     const std::map<std::string, loops::Buffer>& buffers);

}  // namespace tenon::schedule
