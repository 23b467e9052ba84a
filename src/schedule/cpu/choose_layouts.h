// choose_layouts.h — memory layouts of images and weights.
#pragma once

#include "lowering/lower_graph.h"

namespace tenon::schedule {

// Around convolutions, images are NHWC, so that vectors hold channels whatever the size of the image; they
// are zero-padded where windows reach beyond their edges; and weights are stored in the order in which they
// are read. Stages are rewritten accordingly. Buffers in `kept`, and those of host steps, keep the layout of
// the graph and are copied.
void choose_layouts(lowering::KernelGraph& graph);

}  // namespace tenon::schedule
