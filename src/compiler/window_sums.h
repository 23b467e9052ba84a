// window_sums.h — which convolutions are by windows of 3 x 3, such that they may be computed in tiles.
#pragma once

#include "compiler/lower_graph.h"
#include "schedule/choose_tiles.h"

namespace tenon {

// The constant factor of a product, where it is no more than a load; null where there is none.
const loops::Scalar* find_weights(const loops::Definition& definition, const LoweredGraph& lowered);

// The sizes of such a convolution of an image by weights; nothing of another.
std::optional<WindowSums> window_sums(const loops::Definition& definition, const loops::Scalar& image,
                                      const loops::Scalar* weights,
                                      const std::map<std::string, loops::Buffer>& buffers);

}  // namespace tenon
