// conv3x3.h — matches 3 x 3 convolutions that Winograd can compute.
#pragma once

#include "lowering/lower_graph.h"
#include "schedule/cpu/winograd_cost.h"

namespace tenon::schedule {

struct MatchedConv3x3 {
  Conv3x3 conv;
  loops::Scalar image, weights;           // loads
  std::vector<loops::Scalar> of_weights;  // its indices in the order of the graph: filter, channel, window
};

// Such a convolution of an image by constant weights, after layouts were chosen: channels are last, and
// padding is part of the image. Nothing of another.
std::optional<MatchedConv3x3> match_conv3x3(const loops::Definition& definition,
                                            const lowering::KernelGraph& graph);

}  // namespace tenon::schedule
