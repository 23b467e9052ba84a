// choose_layouts.h — memory layouts of images and weights.
#pragma once

#include "lowering/lower_graph.h"

namespace tenon::schedule {

// Around convolutions, images are NHWC, so that vectors hold channels whatever the size of the image, and
// weights are stored in the order in which they are read. Stages are rewritten accordingly. Inputs and
// outputs of the graph, and buffers of host steps, keep its layout and are copied.
//
// For a CPU, images are zero-padded where windows reach beyond their edges. For a GPU they are not, and what
// makes an output or an operand of a host step writes it in the layout of the graph.
void choose_layouts(lowering::KernelGraph& graph, const Target& target);

}  // namespace tenon::schedule
